# SPDX-License-Identifier: GPL-3.0-or-later
"""`verify` on a real guest: the kernel agrees with itself, kernel namespaces with it, and our own tracer too."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT
from guest_account import account

from droiddeck_fastpath import backend as fastpath
from droiddeck_session.diagnostics.verify.suite import prepare
from droiddeck_session.paths import native_file

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
# Each backend answers for a few seconds on an idle machine.
TIME_LIMIT = 550
LEAST_CASES = 10_000


def document(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    assert done.returncode in (0, 1), done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def differences(found: dict[str, Any]) -> list[tuple[str, list[str], list[str]]]:
    """Return what pytest shows when a gate fails: case, expected, got."""
    return [
        (case["case"], case["expected"], case["got"])
        for backend in found["backends"]
        for group in backend["groups"]
        for case in group["cases"]
    ]


@pytest.mark.parametrize("backend", ["chroot", "bwrap", "fastpath"])
def test_every_answer_is_the_kernels(cli: CommandLine, backend: str) -> None:
    done = cli("verify", "--backend", backend, "--json", time_limit=TIME_LIMIT)
    found = document(done)
    assert differences(found) == []
    assert found["backends"][0]["ending"] == ""
    assert found["backends"][0]["compared"] >= LEAST_CASES
    assert (done.returncode, found["equal"]) == (0, True)


@pytest.mark.parametrize("backend", ["bwrap", "fastpath"])
def test_every_answer_is_the_kernels_for_a_user_without_rights(rootfs: Path, backend: str) -> None:
    with account() as cli:
        done = cli("verify", "--guest", str(rootfs), "--backend", backend, "--json", time_limit=TIME_LIMIT)
    found = document(done)
    assert differences(found) == []
    assert found["backends"][0]["compared"] >= LEAST_CASES


def test_every_answer_to_an_emulated_root_is_a_user_namespaces(rootfs: Path) -> None:
    with account() as cli:
        words = ("--guest", str(rootfs), "--identity", "root", "--backend", "fastpath", "--json")
        found = document(cli("verify", *words, time_limit=TIME_LIMIT))
    assert differences(found) == []
    assert found["backends"][0]["compared"] >= LEAST_CASES


def test_every_answer_of_a_tracer_whose_every_access_is_checked_is_the_kernels(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["make", "--silent", "sanitized"], cwd=ROOT, check=True, capture_output=True, timeout=200)

    def sanitized(name: str, machine: str) -> Path:
        return native_file(f"sanitized/{name}", machine)

    monkeypatch.setattr(fastpath, "native_file", sanitized)
    environ = {**os.environ, **cli.environ}
    suite = prepare(environ, {}, backends=["fastpath"], cases=(), thorough=False, keep=False)
    ((comparison, _),) = suite.compared(suite.truth())
    assert (comparison.differences, comparison.ending) == ((), "")
    assert comparison.compared >= LEAST_CASES


@pytest.mark.long
def test_every_call_with_every_path_is_answered_as_by_the_kernel(cli: CommandLine) -> None:
    found = document(cli("verify", "--backend", "fastpath", "--thorough", "--json", time_limit=TIME_LIMIT))
    assert differences(found) == []


def test_a_difference_is_told_with_both_answers_and_how_to_see_it_again(cli: CommandLine) -> None:
    """Debian's proot is known to answer statx from the host; one that does not has nothing to tell here."""
    done = cli("verify", "--backend", "proot", "--case", "statx:/ordinary/file")
    text = done.stdout.decode()
    if done.returncode == 0:
        assert "1 equal, 0 refused as agreed, 0 different" in text
        return
    assert done.returncode == 1
    assert "proot: 0 equal, 0 refused as agreed, 1 different" in text
    assert "kernel    file 0644" in text
    assert "proot     ENOENT" in text
    assert "droiddeck-session verify --backend proot --case statx:/ordinary/file" in text


def test_one_case_is_shown_with_its_answer_and_effect(cli: CommandLine) -> None:
    done = cli("verify", "--backend", "bwrap", "--case", "unlinkat:/bound/file")
    assert done.returncode == 0
    assert "unlinkat:/bound/file: 0 / - host/bound/file" in done.stdout.decode()


def test_a_case_that_there_is_not_is_refused(cli: CommandLine) -> None:
    done = cli("verify", "--backend", "bwrap", "--case", "no-such:case")
    assert done.returncode == 2
    assert b"NO_SUCH_CASE" in done.stderr


def test_a_backend_that_there_is_not_is_refused(cli: CommandLine) -> None:
    done = cli("verify", "--backend", "nothing")
    assert done.returncode == 2
    assert b"UNKNOWN_BACKEND" in done.stderr


def test_without_a_named_backend_what_does_not_confine_is_left_out_with_the_reason(cli: CommandLine) -> None:
    found = document(cli("verify", "--case", "stat:/ordinary", "--json"))
    assert {backend["backend"] for backend in found["backends"]} >= {"bwrap", "fastpath"}
    assert found["skipped"]["direct"] == "it has no rootfs"
    assert found["truth"]["backend"] == "chroot"


def test_nothing_of_a_run_is_left_behind(cli: CommandLine, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = cli("verify", "--backend", "bwrap", "--case", "mkdir:*", env={"TMPDIR": str(temporary)})
    assert done.returncode == 0
    assert list(temporary.iterdir()) == []
    assert cli.sessions() == []


def test_the_files_of_a_run_are_kept_where_that_is_asked_for(cli: CommandLine, tmp_path: Path) -> None:
    done = cli("verify", "--backend", "bwrap", "--case", "stat:/ordinary", "--keep", env={"TMPDIR": str(tmp_path)})
    (command,) = [line for line in done.stdout.decode().splitlines() if line.startswith("  command: ")]
    roots = {path for path in tmp_path.glob("droiddeck-verify-*/**/root/ordinary") if str(path.parent) in command}
    assert len(roots) == 1
