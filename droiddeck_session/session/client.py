# SPDX-License-Identifier: GPL-3.0-or-later
"""The Steam client of a session: asked as it asks itself, by starting it once more with words for the one that runs."""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING, Final

import anyio

from droiddeck_session.errors import EXIT_SESSION_STATE, DroiddeckError, UsageError
from droiddeck_session.processes import ProcessError
from droiddeck_session.session.companions import run_beside
from droiddeck_session.session.membership import TOKEN_VARIABLE, ProcessStat, read_words, send

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from droiddeck_session.backends.interface import HostCommand
    from droiddeck_session.plan.model import Plan
    from droiddeck_session.session.supervisor import Supervisor

_APP_ID: Final = re.compile(r"[1-9][0-9]{0,19}")
_LARGEST_ID: Final = 2**64 - 1
# What a game gets between TERM and KILL.
_GAME_TIME: Final = 5.0
_LOOK: Final = 0.05


class NoSuchGameError(DroiddeckError):
    """No process of the session is of that game."""

    exit_status = EXIT_SESSION_STATE


def client_of(plan: Plan) -> str | None:
    """Return the guest path of the Steam client that a plan runs; None for another kind of session."""
    if plan.kind != "steam":
        return None
    last = len(plan.argv) - 1 - plan.argv[::-1].index("--")
    return plan.argv[last + 1]


def require_app_id(text: str) -> str:
    """Return a game's id, which is a whole number of 64 bits, written plainly.

    Raises:
        UsageError: it is none.
    """
    if not _APP_ID.fullmatch(text) or int(text) > _LARGEST_ID:
        raise UsageError(
            code="INVALID_APP_ID",
            message=f"{text!r} is no game's id",
            hint="a number from 1, as in the store's address",
        )
    return text


class SteamClient:
    """The client of one session.

    Args:
        supervisor: runs the session.
        program: the client, a guest path.
        token: the session's membership token.
        enter: gives the host command that runs another program in the session's guest.
    """

    def __init__(
        self, supervisor: Supervisor, program: str, *, token: str, enter: Callable[[Sequence[str]], HostCommand]
    ) -> None:
        self._supervisor = supervisor
        self._program = program
        self._token = token
        self._enter = enter

    async def ask(self, *words: str) -> int:
        """Give words to the running client and return the status of doing so.

        Raises:
            ProcessError: that cannot be started.
        """
        command = self._enter((self._program, *words))
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            env = {**command.env, TOKEN_VARIABLE: self._token}
            stdio = (nowhere, nowhere, nowhere)
            told = await run_beside(self._supervisor, command.argv, env=env, cwd=command.cwd, stdio=stdio)
        finally:
            os.close(nowhere)
        return told.status

    async def shut_down(self, seconds: float) -> None:
        """Ask the client to end, and wait at most so long for the session's end, which cancels this."""
        with anyio.move_on_after(seconds):
            try:
                if await self.ask("-shutdown") == 0:
                    await anyio.sleep_forever()
            except ProcessError:
                return

    async def quit(self, app: str) -> int:
        """End the processes of a game and return how many there were.

        Raises:
            NoSuchGameError: there are none.
        """
        members = self._of_game(app)
        if not members:
            raise NoSuchGameError(
                code="NO_SUCH_GAME", message=f"no process of game {app} runs", hint="droiddeck-session ps"
            )
        found = {member.identity for member in members}
        for member in members:
            send(member.identity, signal.SIGTERM)
        with anyio.move_on_after(_GAME_TIME):
            while self._of_game(app):  # noqa: ASYNC110 - nobody tells of the end of a process that is not our child
                await anyio.sleep(_LOOK)
        while members := self._of_game(app):
            found |= {member.identity for member in members}
            for member in members:
                send(member.identity, signal.SIGKILL)
            await anyio.sleep(_LOOK)
        return len(found)

    def _of_game(self, app: str) -> list[ProcessStat]:
        entry = f"SteamAppId={app}".encode()
        return [one for one in self._supervisor.membership.living() if entry in read_words(one.pid, "environ")]
