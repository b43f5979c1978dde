#!/usr/bin/python3 -ISB
# SPDX-License-Identifier: GPL-3.0-or-later
"""reaper: open stand-in for the process that Steam puts above each game, and that other programs look for.

    reaper SteamLaunch AppId=N -- COMMAND [ARGS...]

A running game is known by this process: its name is `reaper` and its command line holds `SteamLaunch AppId=N`, both
untouched. It adopts what the game leaves behind, waits for all of it, and ends as COMMAND ended.
"""

from __future__ import annotations

import errno
import os
import signal
import sys

TYPE_CHECKING = False  # the name that checkers know; importing typing for it would triple the start-up
if TYPE_CHECKING:
    from types import FrameType

OWN_FAILURE, CANNOT_RUN, NOT_FOUND = 125, 126, 127  # as env(1)
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
PASSED_ON = (signal.SIGTERM, signal.SIGHUP)
CHANGED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)  # ignored by the interpreter, which exec would hand on


def say(text: str) -> None:
    """Write one line to stderr; bytes that are not UTF-8 survive."""
    os.write(2, os.fsencode(f"stand-in reaper: {text}\n"))


def adopt_orphans() -> None:
    """Become the parent of every orphan below."""
    try:
        import ctypes  # noqa: PLC0415 - absent from Debian's python3-minimal
    except ImportError:
        say("this Python has no ctypes: what the game leaves behind is not waited for")
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        say(f"cannot adopt orphans: {os.strerror(ctypes.get_errno())}")


def wait_for_all(child: int, caller_mask: set[int]) -> int:
    """Wait for the child and everything adopted; return the child's wait status."""
    running = True

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if running:
            os.kill(child, number)
        else:
            end_as(number)

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    signal.signal(signal.SIGINT, lambda _number, _frame: None)  # the terminal gives it to the game too
    signal.pthread_sigmask(signal.SIG_SETMASK, caller_mask)
    status = 0
    while True:
        try:
            # Left unreaped until `running` says so: a handler must not signal a pid that is free again.
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            return status
        if ended is not None and ended.si_pid == child:
            running = False
            status = os.waitpid(child, 0)[1]
        elif ended is not None:
            os.waitpid(ended.si_pid, 0)


def end_as(status: int) -> None:
    """End with a wait status: its exit status, or by its signal."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        os._exit(128 + number)
    os._exit(os.WEXITSTATUS(status))


def main() -> None:
    """Run the command after `--`."""
    words = sys.argv[1:]
    command = words[words.index("--") + 1 :] if "--" in words else []
    if not command:
        say("usage: reaper SteamLaunch AppId=N -- COMMAND [ARGS...]")
        sys.exit(OWN_FAILURE)
    say(f"this is an open stand-in; {' '.join(words[: words.index('--')])}")
    adopt_orphans()
    caller_mask = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # until there is a child to pass them on to
    try:
        child = os.posix_spawnp(command[0], command, os.environ, setsigmask=caller_mask, setsigdef=CHANGED_BY_PYTHON)
    except OSError as problem:
        say(f"cannot run {command[0]}: {problem.strerror}")
        sys.exit(NOT_FOUND if problem.errno in (errno.ENOENT, errno.ENOTDIR) else CANNOT_RUN)
    end_as(wait_for_all(child, caller_mask))


if __name__ == "__main__":
    main()
