# SPDX-License-Identifier: GPL-3.0-or-later
"""Suspending a session: its processes are frozen in passes, because they fork meanwhile.

A pass looks for the members anew. Where the kernel's freezer can be used it is; else they get SIGSTOP, the tracer
last: what it traces needs it to stop. The tree is suspended when two passes in a row find nothing that runs; a freeze
that does not come to that is undone.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

import anyio

from droiddeck_session.session.freezer import Freezer
from droiddeck_session.session.membership import Membership, ProcessStat, read_stat, send

if TYPE_CHECKING:
    from droiddeck_session.session.membership import Identity

# proc_pid_stat(5): stopped, stopped by a tracer, and the ones that run no more.
_AT_REST: Final = frozenset("TtZXx")
_PASSES: Final = 10
_IN_A_ROW: Final = 2
# The pass from which on the wrapper is stopped too.
_WRAPPER_FROM: Final = 2
_FIRST_PAUSE: Final = 0.07
_PAUSE: Final = 0.035
_THAW_LOOKS: Final = 8
_THAW_PAUSE: Final = 0.025


class Suspension:
    """Whether a session is suspended, and the way there and back.

    Args:
        membership: finds the session's processes.
        name: the session's id.
    """

    def __init__(self, membership: Membership, name: str) -> None:
        self._membership = membership
        self._name = name
        self._stopped: set[Identity] = set()
        self._freezer: Freezer | None = None
        self.frozen = False

    @property
    def means(self) -> str:
        """How the session is suspended: `freezer` or `signals`."""
        return "freezer" if self._freezer else "signals"

    async def freeze(self, *, wrapper: int | None) -> list[str]:
        """Suspend all members; return `name (pid)` of those that still ran at the end, after undoing it.

        Args:
            wrapper: the pid of the tracer or wrapper, stopped last.
        """
        self._freezer = Freezer.make(self._name)
        quiet = 0
        moving: list[ProcessStat] = []
        for number in range(_PASSES):
            moving = self._moving()
            quiet = 0 if moving else quiet + 1
            if quiet == _IN_A_ROW:
                self.frozen = True
                return []
            if self._freezer:
                self._freezer.take(member.pid for member in moving)
            else:
                inner = [member for member in moving if member.pid != wrapper]
                for member in moving if number >= _WRAPPER_FROM else inner:
                    if send(member.identity, signal.SIGSTOP):
                        self._stopped.add(member.identity)
            await anyio.sleep(_FIRST_PAUSE if number == 0 else _PAUSE)
        await self.thaw(wrapper=wrapper)
        return [member.in_words() for member in moving]

    def let_go(self, *, wrapper: int | None) -> None:
        """Let all run again, the wrapper first, without waiting for it."""
        self.frozen = False
        if self._freezer:
            self._freezer.release()
            self._freezer = None
        for identity in sorted(self._stopped, key=lambda identity: identity.pid != wrapper):
            send(identity, signal.SIGCONT)
        self._stopped.clear()

    async def thaw(self, *, wrapper: int | None) -> None:
        """Let all run again, and wait a moment until they do."""
        stopped = set(self._stopped)
        self.let_go(wrapper=wrapper)
        for _ in range(_THAW_LOOKS):
            now = [read_stat(identity.pid) for identity in stopped]
            if not any(stat and stat.identity in stopped and stat.state == "T" for stat in now):
                return
            await anyio.sleep(_THAW_PAUSE)

    def _moving(self) -> list[ProcessStat]:
        members = self._membership.living()
        if self._freezer is None:
            return [member for member in members if member.state not in _AT_REST]
        held = self._freezer.held()
        outside = [member for member in members if member.pid not in held]
        # Those inside may take a moment to stand still.
        return outside or ([] if self._freezer.at_rest() else members)
