# SPDX-License-Identifier: GPL-3.0-or-later
"""A session that somebody drives from outside: what can be asked of it while it runs, and who may ask."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import anyio

from droiddeck_session.errors import EXIT_SESSION_STATE, DroiddeckError
from droiddeck_session.session.client import SteamClient
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


class NoSteamError(DroiddeckError):
    """The session is none of Steam's."""

    exit_status = EXIT_SESSION_STATE


@dataclass(frozen=True)
class Entry:
    """How another program runs in a session's guest.

    Attributes:
        enter: gives the host command for its argv.
        client: the guest path of the session's Steam client, if it has one.
    """

    enter: Callable[[Sequence[str]], HostCommand]
    client: str | None


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
        entry: how another program runs in the session's guest.
        client_limit: seconds that the Steam client gets to end by itself.

    Attributes:
        client: the session's Steam client, if it has one.
    """

    def __init__(
        self, supervisor: Supervisor, folder: SessionFolder, *, token: str, entry: Entry, client_limit: float
    ) -> None:
        self._supervisor = supervisor
        self._folder = folder
        self._token = token
        self._enter = entry.enter
        self._client_limit = client_limit
        self.client = (
            SteamClient(supervisor, entry.client, token=token, enter=entry.enter) if entry.client is not None else None
        )
        self._suspension = Suspension(supervisor.membership, folder.id)
        self._changing = anyio.Lock()
        supervisor.before_end = self._let_go

    async def stop(self) -> None:
        """Ask the client to end, if the session has one, then the session, as TERM does; another stop is the same."""
        if self._supervisor.stop_requested:
            return
        self._supervisor.stop_requested = True
        if self.client and self._supervisor.began.is_set():
            self._let_go()
            self._folder.record("steam.shutdown_requested", limit=self._client_limit)
            await self.client.shut_down(self._client_limit)
        self._supervisor.end_by(signal.SIGTERM)

    def steam(self) -> SteamClient:
        """Return the session's Steam client.

        Raises:
            NoSteamError: it has none.
        """
        if self.client is None:
            raise NoSteamError(
                code="NO_STEAM_SESSION",
                message="the session runs no Steam client",
                hint="droiddeck-session start steam",
            )
        return self.client

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
                self._folder.record("session.suspended", by=self._suspension.means)

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
