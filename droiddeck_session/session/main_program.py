# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding the session's main program under a wrapper or tracer, and how it really ended."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from droiddeck_session.session.membership import (
    TOKEN_VARIABLE,
    Identity,
    Membership,
    children,
    descends,
    read_stat,
    read_words,
)
from droiddeck_session.session.wait_status import WaitStatus, exit_info, wait_child

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# In the environment of the wrapper and its helpers; the guest's `env -i` drops it.
WRAPPER_MARK: Final = b"DROIDDECK_WRAPPER=1"
# How often to look for the wrapper's child: it appears within milliseconds, and a short program is gone as fast.
_LOOK: Final = 0.001
_LOOK_LATER: Final = 0.05
_SOON: Final = 200
# The wrapper reaps its child at once; only then does the kernel tell the status to others.
_STATUS_TRIES: Final = 200


@dataclass(frozen=True)
class MainProgram:
    """The main program: who it is, and a pidfd of it."""

    identity: Identity
    pidfd: int

    @property
    def pid(self) -> int:
        """The process id."""
        return self.identity.pid


def hold(pid: int) -> MainProgram | None:
    """Open a process by pid; None when it is gone."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return None
    stat = read_stat(pid)
    if stat is None:
        os.close(pidfd)
        return None
    return MainProgram(stat.identity, pidfd)


class Wrapper:
    """The process between us and the main program, which may start others too: a script that leads to a tracer does.

    Args:
        pid: the process.
        argv: its command line, which ends in the guest's: `env -i` with the token, then the program.
        token: the membership token.
        reported: gives the process that the wrapper says will become the program, if it says so.
    """

    def __init__(self, pid: int, argv: Sequence[str], token: str, reported: Callable[[], int | None]) -> None:
        self.pid = pid
        self._argv = [os.fsencode(word) for word in argv]
        self._entry = f"{TOKEN_VARIABLE}={token}".encode()
        self._reported = reported

    def main_program(self) -> MainProgram | None:
        """Return the main program, as soon as it can be told from another child of the wrapper."""
        reported = self._reported()
        if reported is not None and descends(reported, self.pid):
            return hold(reported)
        # Held first: the number cannot become another's while it is looked at.
        for main in filter(None, map(hold, children(self.pid))):
            if self._is_program(main.pid):
                return main
            os.close(main.pidfd)
        return None

    def _is_program(self, pid: int) -> bool:
        """Whether a child has become the guest's `env -i`, or what that became: then it lost the wrapper's mark."""
        words = read_words(pid, "cmdline")
        if self._entry in words and len(words) < len(self._argv) and words == self._argv[-len(words) :]:
            return True
        variables = read_words(pid, "environ")
        return self._entry in variables and WRAPPER_MARK not in variables


async def below(wrapper: Wrapper, membership: Membership, *, wrapper_ended: Callable[[], bool]) -> MainProgram | None:
    """Wait for a wrapper's main program and return it.

    None when the wrapper ends before, or when the program has come and gone and only other members are left.
    """
    looks = 0
    while not wrapper_ended():
        if (main := wrapper.main_program()) is not None:
            return main
        late = looks >= _SOON and looks % 10 == 0
        if late and not children(wrapper.pid) and membership.living(besides={wrapper.pid}):
            return None
        looks += 1
        await anyio.sleep(_LOOK if looks < _SOON else _LOOK_LATER)
    return None


def adopted(membership: Membership) -> MainProgram | None:
    """Return the oldest member that came to us when its parent was killed."""
    for member in membership.living():
        if member.parent == os.getpid() and (main := hold(member.pid)) is not None:
            return main
    return None


async def wait_status(main: MainProgram) -> WaitStatus | None:
    """Return how the main program ended, which it has; None where neither waiting nor the kernel's record tells."""
    for _ in range(_STATUS_TRIES):
        current = read_stat(main.pid)
        reaped = current is None or current.identity != main.identity
        status = wait_child(main.pidfd) or exit_info(main.pidfd)
        if status is not None or reaped:
            return status
        await anyio.sleep(_LOOK)
    return None
