#!/usr/bin/python3 -ISB
# SPDX-License-Identifier: GPL-3.0-or-later
"""droiddeck-game-env: the step of the game chain that sees a game's environment before Proton does.

    droiddeck-game-env PROTON VERB [ARGS...]

It changes nothing today: arguments and environment go on as they came, and Proton takes this process over. It
adds one line that says what is wrong when PROTON cannot run. Per-game settings have their place here.
"""

from __future__ import annotations

import errno
import os
import signal
import sys

OWN_FAILURE, CANNOT_RUN, NOT_FOUND = 125, 126, 127  # as env(1)


def leave(text: str, status: int) -> None:
    """End with one line."""
    os.write(2, os.fsencode(f"droiddeck-game-env: {text}\n"))
    sys.exit(status)


def inherited_environment() -> dict[bytes, bytes]:
    """Return the environment as it was given: under a C locale Python itself adds LC_CTYPE (PEP 538), even with -I."""
    try:
        with open("/proc/self/environ", "rb") as environ:
            entries = environ.read().split(b"\0")
    except OSError:
        return dict(os.environb)
    return {name: value for name, equals, value in (entry.partition(b"=") for entry in entries) if equals}


def main() -> None:
    """Become Proton."""
    command = sys.argv[1:]
    if len(command) < 2:  # noqa: PLR2004 - PROTON and VERB
        leave("usage: droiddeck-game-env PROTON VERB [ARGS...]", OWN_FAILURE)
    for changed_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(changed_by_python, signal.SIG_DFL)
    try:
        os.execve(command[0], command, inherited_environment())
    except OSError as problem:
        absent = problem.errno in (errno.ENOENT, errno.ENOTDIR)
        leave(f"cannot run {command[0]}: {problem.strerror}", NOT_FOUND if absent else CANNOT_RUN)


if __name__ == "__main__":
    main()
