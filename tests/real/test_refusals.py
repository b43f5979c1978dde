# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input: one line that names the thing and one that names the fix, the documented status, nothing left behind."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from backend_trials import DENY_PTRACE

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine

pytestmark = pytest.mark.real
TRACERS = ("proot", "fastpath")


def refusal(ended: subprocess.CompletedProcess[bytes], *, code: str, names: str, status: int = 125) -> None:
    text = ended.stderr.decode(errors="replace")
    assert ended.returncode == status, text
    assert f"[{code}]" in text
    assert names in text
    assert "hint: " in text
    assert "Traceback" not in text
    assert ended.stdout == b""


def test_no_guest(bare_cli: CommandLine) -> None:
    refusal(bare_cli("run", "--", "true"), code="NO_GUEST", names="guest create")


def test_unknown_guest(cli: CommandLine) -> None:
    refusal(cli("run", "--guest", "dmeo", "--", "true"), code="UNKNOWN_GUEST", names="demo")


def test_a_required_bind_that_is_missing(cli: CommandLine) -> None:
    # Case 66.
    refusal(cli("run", "--bind", "/no/such:/mnt/zz", "--", "true"), code="BIND_MISSING", names="/no/such")


@pytest.mark.parametrize("tracer", TRACERS)
def test_a_colon_in_a_bind_for_a_proot_command_line(cli: CommandLine, tmp_path: Path, tracer: str) -> None:
    # Case 65: the user's table can hold what the flag cannot; a proot-style command line cannot express it.
    (tmp_path / "co:lon").mkdir()
    rows = cli.folders["config"] / "droiddeck-session"
    rows.mkdir()
    (rows / "binds.toml").write_text(
        f'[[bind]]\nhost = "{tmp_path}/co:lon"\nguest = "/mnt"\nreason = "test"\nrequired = true\n'
    )
    refusal(cli("run", "--backend", tracer, "--", "true"), code="COLON_IN_BIND", names="co:lon")
    assert cli("run", "--backend", "bwrap", "--", "true").returncode == 0


def test_a_colon_on_the_command_line_is_no_guess(cli: CommandLine) -> None:
    refusal(cli("run", "--bind", "/tmp/co:lon:/mnt", "--", "true"), code="BIND_SYNTAX", names="/tmp/co:lon:/mnt")


def test_relative_paths(cli: CommandLine) -> None:
    refusal(cli("run", "--bind", "/tmp:mnt", "--", "true"), code="BIND_SYNTAX", names="mnt")
    refusal(cli("run", "--cwd", "somewhere", "--", "true"), code="BAD_CWD", names="somewhere")


def test_a_file_on_a_folder(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    refusal(cli("run", "--bind", f"{file}:/usr", "--", "true"), code="BIND_KIND", names="/usr")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[[bind]\n", "binds.toml:1"),
        ('[[bind]]\nhost = "/tmp"\nguest = "/mnt"\nreason = "x"\nrequierd = true\n', "requierd"),
        ('[[bind]]\nhost = "/tmp"\nguest = "mnt"\nreason = "x"\n', "binds.toml:3"),
    ],
)
def test_a_malformed_bind_table_is_named_with_its_line(cli: CommandLine, text: str, names: str) -> None:
    rows = cli.folders["config"] / "droiddeck-session"
    rows.mkdir()
    (rows / "binds.toml").write_text(text)
    ended = cli("run", "--", "true")
    assert ended.returncode == 125
    assert names.encode() in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_a_state_folder_that_cannot_be_written(cli: CommandLine, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.touch()
    ended = cli("run", "--", "true", env={"XDG_STATE_HOME": str(blocked)})
    refusal(ended, code="STATE_NOT_WRITABLE", names=str(blocked))


@pytest.mark.parametrize("tracer", TRACERS)
def test_a_read_only_bind_that_the_backend_cannot_enforce(cli: CommandLine, tmp_path: Path, tracer: str) -> None:
    # Case 70.
    flags = ["--ro-bind", f"{tmp_path}:/mnt"]
    refusal(cli("run", "--backend", tracer, *flags, "--", "true"), code="READ_ONLY_BIND", names="/mnt")
    ended = cli("run", "--backend", "bwrap", *flags, "--", "touch", "/mnt/x")
    assert ended.returncode == 1
    assert list((tmp_path / "config").iterdir()) == []
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("tracer", TRACERS)
def test_ptrace_denied_is_named(cli: CommandLine, tracer: str) -> None:
    # Case 53.
    argv = [sys.executable, "-c", DENY_PTRACE, *cli.argv("run", "--backend", tracer, "--", "true")]
    fresh = cli.folders["home"] / "cache"
    ended = subprocess.run(
        argv, env={**cli.environ, "XDG_CACHE_HOME": str(fresh)}, capture_output=True, check=False, timeout=50
    )
    refusal(ended, code="BACKEND_UNAVAILABLE", names="ptrace")


@pytest.mark.parametrize("tracer", TRACERS)
def test_already_traced_is_named(cli: CommandLine, tracer: str) -> None:
    # Case 54.
    fresh = cli.folders["home"] / "cache"
    ended = subprocess.run(
        ["strace", "-f", "-o", "/dev/null", *cli.argv("run", "--backend", tracer, "--", "true")],
        env={**cli.environ, "XDG_CACHE_HOME": str(fresh)}, capture_output=True, check=False, timeout=50,
    )  # fmt: skip
    refusal(ended, code="BACKEND_UNAVAILABLE", names="traced")


def test_a_backend_that_does_not_confine_is_refused(cli: CommandLine, tmp_path: Path) -> None:
    # The shipped proot 5.4.0 runs the guest on the host's root without a word.
    fake = tmp_path / "proot"
    fake.write_text(
        f'#!/bin/sh\n[ "$1" = --help ] && exec {shutil.which("proot")} "$@"\n'
        'while case "$1" in -*) true;; *) false;; esac; do shift 2; done\nexec "$@"\n'
    )
    fake.chmod(0o755)
    ended = cli("run", "--backend", "proot", "--", "true", env={"DROIDDECK_BACKEND_PROOT": str(fake)})
    refusal(ended, code="BACKEND_DOES_NOT_CONFINE", names="proot")


def test_auto_takes_no_backend_that_leaks(cli: CommandLine) -> None:
    ended = cli("plan", "run", "--json", "--", "true")
    assert b'"backend": "fastpath"' in ended.stdout


def test_a_program_with_an_equals_sign(cli: CommandLine) -> None:
    refusal(cli("run", "--", "a=b"), code="PROGRAM_NAME", names="a=b")


def test_a_steam_url_that_is_none(cli: CommandLine) -> None:
    refusal(cli("steam", "http://example.invalid/"), code="INVALID_STEAM_URL", names="http://example.invalid/")


def test_usage_errors_of_wrapping_verbs_are_125_and_of_the_others_2(cli: CommandLine) -> None:
    assert cli("run", "--no-such-option", "--", "true").returncode == 125
    assert cli("run").returncode == 125
    assert cli("plan", "--no-such-option").returncode == 2
    assert cli("no-such-verb").returncode == 2
