# SPDX-License-Identifier: GPL-3.0-or-later
"""Job control: of jobs inside the guest, and of the tracer itself under a shell."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

import pytest
from terminals import TerminalProgram
from traced import ENVIRON, TIME_LIMIT, SmallGuest

if TYPE_CHECKING:
    from pathlib import Path

SHELL = ["/bin/bash", "--norc", "--noprofile", "-i"]
# Asked for by what it prints, so that the echo of what was typed is not taken for it.
SLEEPER = "sh -c 'echo slee''ping; exec sleep 1000'"
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


@pytest.mark.parametrize("inside", [True, False])
def test_a_job_is_stopped_and_goes_on_and_is_interrupted(tmp_path: Path, *, inside: bool) -> None:
    guest = SmallGuest(tmp_path)
    environ = {**ENVIRON, "PS1": "READY> ", "TERM": "dumb", "HISTFILE": "/dev/null"}
    shell = guest.command(*SHELL) if inside else SHELL
    job = SLEEPER if inside else f"{shlex.join(guest.command('/bin/sh'))} -c {shlex.quote(SLEEPER)}"
    with TerminalProgram(shell, environ) as terminal:
        drive(terminal, job)
