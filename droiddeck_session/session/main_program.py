# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding the session's main program under a wrapper or tracer, and how it really ended."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from droiddeck_session.session.membership import Identity, Membership, children, read_stat
from droiddeck_session.session.wait_status import WaitStatus, exit_info, wait_child

if TYPE_CHECKING:
    from collections.abc import Callable

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


async def below(wrapper: int, membership: Membership, *, wrapper_ended: Callable[[], bool]) -> MainProgram | None:
    """Wait for a wrapper's first child and return it.

    None when the wrapper ends before, or when its child has come and gone and only other members are left.
    """
    looks = 0
    while not wrapper_ended():
        for pid in children(wrapper):
            if (main := hold(pid)) is not None:
                return main
        if looks >= _SOON and looks % 10 == 0 and membership.living(besides={wrapper}) and not children(wrapper):
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
