# SPDX-License-Identifier: GPL-3.0-or-later
"""Job control: of jobs inside the guest, and of the tracer itself under a shell."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import pytest
from terminals import TerminalProgram
from traced import ENVIRON, TIME_LIMIT, SmallGuest

SHELL = ["/bin/bash", "--norc", "--noprofile", "-i"]
# Asked for by what it prints, so that the echo of what was typed is not taken for it.
SLEEPER = "sh -c 'echo slee''ping; exec sleep 1000'"
# A process that stands still has some 80, one whose stop is not honoured tries again and soon has 100,000.
LOOKS, MOST_SWITCHES = 20, 2000
STOP, INTERRUPT = "\x1a", "\x03"


def drive(terminal: TerminalProgram, job: str) -> None:
    """Stop a job, look at it, let it go on in the background and the foreground, and interrupt it."""
    terminal.expect("READY> ")
    terminal.type(f"{job}\n")
    terminal.expect("sleeping")
    terminal.type(STOP)
    terminal.expect("Stopped")
    terminal.expect("READY> ")
    terminal.type("jobs\n")
    terminal.expect("Stopped")
    terminal.expect("READY> ")
    terminal.type("bg; jobs\n")
    terminal.expect("Running")
    terminal.expect("READY> ")
    shell = terminal.foreground()
    terminal.type("fg\n")
    until = time.monotonic() + TIME_LIMIT
    while terminal.foreground() == shell:
        assert time.monotonic() < until
    terminal.type(INTERRUPT)
    terminal.expect("READY> ")
    terminal.type("echo status $?.\n")
    terminal.expect("status 130.")


# Who sent each: the terminal (SI_KERNEL, asm-generic/siginfo.h), or a process.
TAKE = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
for number in range(20):
    print(f"ready{number}.", flush=True)
    print("from", signal.sigwaitinfo({signal.SIGINT}).si_code, end=".", flush=True)
"""
SI_KERNEL = 0x80


def test_what_the_terminal_sends_to_both_comes_once(tmp_path: Path) -> None:
    command = SmallGuest(tmp_path).command("/usr/bin/python3", "-S", "-c", TAKE)
    with TerminalProgram(command, ENVIRON) as terminal:
        for number in range(20):
            terminal.expect(f"ready{number}.")
            terminal.type(INTERRUPT)
            terminal.expect("from ")
            assert terminal.expect(".") == str(SI_KERNEL)
        assert terminal.wait() == 0


def switches(pid: int) -> int:
    """Return how often a process has left a processor."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)


def test_a_job_in_the_background_that_reads_the_terminal_stands_still_until_it_may(tmp_path: Path) -> None:
    environ = {**ENVIRON, "PS1": "READY> ", "TERM": "dumb", "HISTFILE": "/dev/null"}
    with TerminalProgram(SmallGuest(tmp_path).command(*SHELL), environ) as terminal:
        terminal.expect("READY> ")
        terminal.type("cat & echo job''=$!.\n")
        terminal.expect("job=")
        pid = int(terminal.expect("."))
        terminal.expect("READY> ")
        until, still, before = time.monotonic() + TIME_LIMIT, 0, 0
        while still < LOOKS:
            assert time.monotonic() < until
            terminal.type("jobs\n")
            now = switches(pid)
            still = still + 1 if "Stopped" in terminal.expect("READY> ") and now == before else 0
            before = now
        assert before < MOST_SWITCHES
        terminal.type("fg\n")
        terminal.expect("cat")
        terminal.type("hello\n")
        terminal.expect("hello")
        terminal.expect("hello")
        terminal.type("\x04")
        terminal.expect("READY> ")


@pytest.mark.parametrize("inside", [True, False])
def test_a_job_is_stopped_and_goes_on_and_is_interrupted(tmp_path: Path, *, inside: bool) -> None:
    guest = SmallGuest(tmp_path)
    environ = {**ENVIRON, "PS1": "READY> ", "TERM": "dumb", "HISTFILE": "/dev/null"}
    shell = guest.command(*SHELL) if inside else SHELL
    job = SLEEPER if inside else f"{shlex.join(guest.command('/bin/sh'))} -c {shlex.quote(SLEEPER)}"
    with TerminalProgram(shell, environ) as terminal:
        drive(terminal, job)
