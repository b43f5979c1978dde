# SPDX-License-Identifier: GPL-3.0-or-later
"""A session that somebody drives from outside: what can be asked of it while it runs, and who may ask."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Protocol

import anyio

from droiddeck_session.session.companions import run_beside
from droiddeck_session.session.membership import TOKEN_VARIABLE
from droiddeck_session.session.suspension import Suspension

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from droiddeck_session.backends.interface import HostCommand
    from droiddeck_session.session.folder import SessionFolder
    from droiddeck_session.session.supervisor import Supervisor
    from droiddeck_session.session.wait_status import WaitStatus
    from droiddeck_session.settings import SessionSettings

    Enter = Callable[[Sequence[str]], HostCommand]


class Control(Protocol):
    """Who drives a session."""

    def folder_made(self, folder: SessionFolder, settings: SessionSettings) -> None:
        """The session has its folder: events can be heard from now on."""

    async def drive(self, session: DrivenSession) -> None:
        """Ask for things while the session runs; cancelled at its end."""


class DrivenSession:
    """What can be asked of a session that runs.

    Args:
        supervisor: runs it.
        folder: its folder.
        token: its membership token.
        enter: gives the host command that runs another program in the session's guest.
    """

    def __init__(self, supervisor: Supervisor, folder: SessionFolder, *, token: str, enter: Enter) -> None:
        self._supervisor = supervisor
        self._folder = folder
        self._token = token
        self._enter = enter
        self._suspension = Suspension(supervisor.membership)
        self._changing = anyio.Lock()
        supervisor.before_end = self._let_go

    def stop(self) -> None:
        """Ask the session to end as TERM does: another one while it ends is the same request."""
        if not self._supervisor.stop_requested:
            self._supervisor.end_by(signal.SIGTERM)

    def kill(self) -> None:
        """End the session at once."""
        self._let_go()
        self._supervisor.kill("asked to")

    async def suspend(self) -> None:
        """Stop all processes; on failure all run again, and `session.suspend_failed` names those that would not."""
        async with self._changing:
            if self._suspension.frozen or self._supervisor.stop_requested:
                return
            self._folder.record("session.suspend_requested")
            moving = await self._suspension.freeze(wrapper=self._supervisor.wrapper)
            if moving:
                self._folder.record("session.suspend_failed", processes=moving)
            elif self._supervisor.stop_requested:
                self._let_go()
            else:
                self._folder.record("session.suspended")

    async def resume(self) -> None:
        """Let all processes run again."""
        async with self._changing:
            if not self._suspension.frozen:
                return
            self._folder.record("session.resume_requested")
            await self._suspension.thaw(wrapper=self._supervisor.wrapper)
            self._folder.record("session.resumed")

    async def execute(self, argv: Sequence[str], stdio: tuple[int, int, int]) -> WaitStatus:
        """Run another program in the session's guest and wait for it; it ends with the session.

        Args:
            argv: program and arguments, in the guest.
            stdio: its descriptors 0 to 2; closed here.

        Raises:
            ProcessError: it cannot be started.
        """
        command = self._enter(argv)
        env = {**command.env, TOKEN_VARIABLE: self._token}
        try:
            return await run_beside(self._supervisor, command.argv, env=env, cwd=command.cwd, stdio=stdio)
        finally:
            for descriptor in stdio:
                os.close(descriptor)

    def _let_go(self) -> None:
        if self._suspension.frozen:
            self._suspension.let_go(wrapper=self._supervisor.wrapper)
