# SPDX-License-Identifier: GPL-3.0-or-later
"""The tracer on a real Debian guest, whose C library is newer than the host's: restarts, cancellation, long loops."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from traced import ENVIRON, PROGRAMS, TRACER, answers

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
LOOPS = 50
MORE_LOOPS = 500  # ./dev test --all


class Guest:
    """The demo guest with a folder of this test's own as /mnt."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.folder = folder

    def build(self, name: str) -> str:
        """Compile a test program against the C library that it finds in the guest."""
        target = self.folder / name
        subprocess.run(
            ["gcc", "-std=c11", "-O1", "-pthread", "-o", target, PROGRAMS / f"{name}.c"], check=True, timeout=120
        )
        return f"/mnt/{name}"

    def run(self, *argv: str) -> subprocess.CompletedProcess[bytes]:
        command: list[str | Path] = [
            TRACER,
            "-r",
            self.root,
            "-b",
            f"{self.folder}:/mnt",
            "-b",
            "/proc",
            "-b",
            "/dev/null",
            "--kill-on-exit",
        ]
        return subprocess.run([*command, *argv], capture_output=True, timeout=280, env=ENVIRON, check=False)


@pytest.fixture
def guest(demo_root: Path, tmp_path: Path) -> Guest:
    return Guest(demo_root, tmp_path)


def expected(guest: Guest, name: str) -> tuple[int, list[str], str]:
    """Return what the program says on the host itself."""
    there = guest.folder / "host"
    there.mkdir()
    done = subprocess.run(
        [guest.folder / name, there], capture_output=True, timeout=100, env=ENVIRON, cwd="/", check=False
    )
    return answers(done)


@pytest.mark.parametrize("name", ["registers", "restart", "tiny_stack", "cancel"])
def test_a_caller_with_the_guests_own_libc_sees_what_the_kernel_shows_it(guest: Guest, name: str) -> None:
    program = guest.build(name)
    wanted = expected(guest, name)
    (guest.folder / "x").mkdir()
    assert answers(guest.run(program, "/mnt/x")) == wanted
    assert wanted[0] == 0


@pytest.mark.parametrize("rounds", [LOOPS, pytest.param(MORE_LOOPS, marks=pytest.mark.long)])
def test_thread_and_fork_bursts_never_hang(guest: Guest, rounds: int) -> None:
    program = guest.build("crowd")
    script = f"""
    n=0
    while [ $n -lt {rounds} ]; do
        n=$((n + 1))
        for kind in processes blocked; do
            mkdir /mnt/$n
            {program} $kind 20 /mnt/$n >/dev/null || exit 1
            rm -r /mnt/$n
        done
        (/bin/true | /bin/cat | /bin/true) &
    done
    wait
    echo $n"""
    assert answers(guest.run("/bin/sh", "-c", script)) == (0, [str(rounds)], "")


@pytest.mark.parametrize("rounds", [LOOPS // 5, pytest.param(MORE_LOOPS, marks=pytest.mark.long)])
def test_stopping_during_a_burst_leaves_nothing(guest: Guest, rounds: int) -> None:
    marker = f"DD_TEST_MARKER={os.getpid()}"
    for _ in range(rounds):
        script = "echo ready; while :; do (/bin/true | /bin/cat) & /bin/true; done"
        command: list[str | Path] = [
            TRACER,
            "-r",
            guest.root,
            "--kill-on-exit",
            "/usr/bin/env",
            marker,
            "/bin/sh",
            "-c",
            script,
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRON) as running:
            assert running.stdout is not None
            assert running.stdout.readline() == b"ready\n"
            running.terminate()
            assert running.wait(30) == 128 + 15
    found = subprocess.run(["grep", "-lsz", marker, *environments()], capture_output=True, timeout=30, check=False)
    assert found.stdout == b""


def environments() -> list[str]:
    return [f"{folder}/environ" for folder in Path("/proc").iterdir() if folder.name.isdigit()]
