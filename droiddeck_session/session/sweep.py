# SPDX-License-Identifier: GPL-3.0-or-later
"""Ending what is left of a session: TERM and a while, then KILL by membership, again until nothing is left.

A tracer is spared until its tracees are gone: without it they would run on with a broken file system.
"""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import stat
from typing import TYPE_CHECKING, Final

import anyio

from droiddeck_session.session.membership import Identity, Membership, ProcessStat, send

if TYPE_CHECKING:
    from collections.abc import Iterator

# A process that KILL has not ended after this time hangs in the kernel or belongs to somebody else.
KILL_LIMIT: Final = 5.0
# Between two looks at a tree that is waited for.
_LONGEST_PAUSE: Final = 0.5
# What a wrapper gets to end by itself once its last child is gone.
_WRAPPER_TIME: Final = 0.5


def _pauses() -> Iterator[float]:
    """Seconds between two looks: short at first, because most processes end within milliseconds."""
    pause = 0.001
    while True:
        yield pause
        pause = min(pause * 1.6, 0.05)


async def terminate(membership: Membership, *, wrapper: int | None, seconds: float, cut_short: anyio.Event) -> None:
    """Ask all members but the wrapper to end, and wait until they have, the time is up, or `cut_short` is set."""
    asked: set[Identity] = set()
    besides = () if wrapper is None else (wrapper,)
    with anyio.move_on_after(seconds):
        pauses = _pauses()
        while (members := membership.living(besides=besides)) and not cut_short.is_set():
            for member in members:
                if member.identity not in asked:
                    asked.add(member.identity)
                    send(member.identity, signal.SIGTERM)
                    # A stopped process would not act on it.
                    send(member.identity, signal.SIGCONT)
            await anyio.sleep(next(pauses))


async def outlast(membership: Membership, *, wrapper: int | None, seconds: float, cut_short: anyio.Event) -> None:
    """Wait until all members but the wrapper have ended by themselves, or `cut_short` is set.

    Args:
        membership: finds the members.
        wrapper: the pid of the tracer or wrapper.
        seconds: not heeded: who waits for a tree waits as long as that lives.
        cut_short: set to give up.
    """
    del seconds
    besides = () if wrapper is None else (wrapper,)
    pause = 0.001
    while membership.living(besides=besides) and not cut_short.is_set():
        with anyio.move_on_after(pause):
            await cut_short.wait()
        pause = min(pause * 1.6, _LONGEST_PAUSE)


async def kill(membership: Membership, *, wrapper: int | None = None, limit: float = KILL_LIMIT) -> list[ProcessStat]:
    """Kill all members, the wrapper last, and return those that could not be ended within `limit` seconds."""
    spared_until = anyio.current_time() + _WRAPPER_TIME
    deadline = anyio.current_time() + limit
    pauses = _pauses()
    while (members := membership.living()) and anyio.current_time() < deadline:
        inner = [member for member in members if member.pid != wrapper]
        if inner:
            spared_until = anyio.current_time() + _WRAPPER_TIME
        for member in inner or (members if anyio.current_time() >= spared_until else ()):
            send(member.identity, signal.SIGKILL)
        await anyio.sleep(next(pauses))
    return members


def remove_leavings(pattern: str, pid: int) -> None:
    """Remove the files of ours that a program leaves behind when it is killed; what cannot be removed stays."""
    for path in glob.glob(pattern.format(pid=pid)):  # noqa: PTH207 - a whole pattern, from the root
        with contextlib.suppress(OSError):
            found = os.lstat(path)
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                os.unlink(path)  # noqa: PTH108 - as lstat above
