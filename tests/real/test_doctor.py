# SPDX-License-Identifier: GPL-3.0-or-later
"""`doctor` as a user runs it: on this machine as it is, and where ptrace or a backend is broken."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine

pytestmark = pytest.mark.real

# Refuses ptrace(2) with EPERM, as containers do, and then becomes its arguments. linux/filter.h, linux/seccomp.h.
WITHOUT_PTRACE = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 101, "aarch64": 117}[platform.machine()]
filter = b"".join(struct.pack("<HBBI", *row) for row in (
    (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000),
))
kept = ctypes.create_string_buffer(filter)
program = struct.pack("<H6xQ", 4, ctypes.addressof(kept))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program, 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""

BROKEN_BACKEND = """
import os, time

class Broken:
    name = "broken"

    def cache_key(self, request):
        return "none"

    def probe(self, request):
        {probe}

    def command(self, plan, capabilities):
        raise NotImplementedError
"""


def checks(done: subprocess.CompletedProcess[bytes]) -> dict[str, dict[str, Any]]:
    document = json.loads(done.stdout)
    assert (document["schema"], document["ok"]) == (1, True)
    assert document["healthy"] is (done.returncode == 0)
    return {entry["id"]: entry for entry in document["checks"]}


def test_a_machine_that_runs_sessions_is_healthy(cli: CommandLine) -> None:
    done = cli("doctor", "--json")
    found = checks(done)
    assert done.returncode == 0, found
    assert done.stderr == b""
    assert found["guest"]["status"] == "ok"
    assert found["guest.mount-points"]["status"] == "ok"
    assert {"backend.bwrap", "backend.chroot", "backend.proot", "backend.direct"} <= set(found)
    assert all(entry["fix"] for entry in found.values() if entry["status"] in {"warn", "fail"})


def test_without_a_guest_it_ends_with_1_and_says_how_to_make_one(bare_cli: CommandLine) -> None:
    done = bare_cli("doctor")
    assert done.returncode == 1
    assert re.search(rb"^fail  guest .*\n +fix: .*guest create", done.stdout, re.MULTILINE)
    assert b"\x1b" not in done.stdout


@pytest.mark.parametrize(("variables", "coloured"), [("TERM=xterm", True), ("TERM=xterm NO_COLOR=1", False)])
def test_colours_are_for_terminals_without_no_color(cli: CommandLine, variables: str, *, coloured: bool) -> None:
    command = f"{variables} {shlex.join(cli.argv('doctor'))}"
    environ = {name: value for name, value in cli.environ.items() if name != "NO_COLOR"}
    done = subprocess.run(
        ["script", "-qec", command, "/dev/null"],
        env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=55, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert b"evidence and fix" in done.stdout
    assert bool(re.search(rb"\x1b\[[0-9;]*3[0-7]m", done.stdout)) is coloured


def test_a_machine_that_refuses_ptrace_is_told_so_by_name(cli: CommandLine) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PTRACE, *cli.argv("doctor", "--json")],
        env=cli.environ, capture_output=True, timeout=55, check=False,
    )  # fmt: skip
    found = checks(done)
    assert done.returncode == 1
    assert found["ptrace"]["status"] == "fail"
    assert "ptrace is not permitted here" in found["ptrace"]["evidence"]
    assert found["traced"]["status"] == "ok"


def test_under_another_tracer_it_names_the_tracer(cli: CommandLine) -> None:
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=none", *cli.argv("doctor", "--json")],
        env=cli.environ, capture_output=True, timeout=55, check=False,
    )  # fmt: skip
    found = checks(done)
    assert found["traced"]["status"] == "fail"
    assert "strace" in found["traced"]["evidence"]
    assert found["ptrace"]["status"] == "fail"


@pytest.mark.parametrize(
    ("probe", "said"),
    [
        ("raise RuntimeError('of all things')", "of all things"),
        ("os._exit(9)", "exit status 9"),
        ("os.kill(os.getpid(), 11)", "killed by SIGSEGV"),
    ],
)
def test_a_backend_that_breaks_takes_nothing_along(cli: CommandLine, tmp_path: Path, probe: str, said: str) -> None:
    place = tmp_path / "third party"
    (place / "broken-1.dist-info").mkdir(parents=True)
    (place / "broken-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (place / "broken-1.dist-info" / "entry_points.txt").write_text(
        "[droiddeck_session.backends]\nbroken = broken_backend:Broken\n"
    )
    (place / "broken_backend.py").write_text(BROKEN_BACKEND.format(probe=probe))
    done = cli("doctor", "--json", env={"PYTHONPATH": f"{place}:{cli.environ['PYTHONPATH']}"})
    found = checks(done)
    assert b"Traceback" not in done.stderr
    assert found["backend.broken"]["status"] in {"fail", "warn"}
    assert said in found["backend.broken"]["evidence"]
    assert found["guest"]["status"] == "ok"
