# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams of a session's events: what is in its file, and what is added to it, each line exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from droiddeck_session.daemon.protocol import parse
from droiddeck_session.session.recovery import EVENTS

if TYPE_CHECKING:
    from droiddeck_session.daemon.pipes import Client
    from droiddeck_session.daemon.sessions import Session

_CHUNK: Final = 1 << 16


async def events(connection: Client, session: Session, *, follow: bool) -> None:
    """Send the events of a session, one a line; with `follow` until it is over.

    Raises:
        ConnectionLostError: the client went away.
    """
    position = 0
    while True:
        # Before the read: what is written after it is a change that wakes us.
        changed, over = session.changed, session.over.is_set()
        position = await _send_from(connection, session, position)
        if over or not follow:
            return
        await changed.wait()


async def _send_from(connection: Client, session: Session, position: int) -> int:
    if not session.folder:
        return position
    try:
        file = (Path(session.folder) / EVENTS).open("rb")
    except FileNotFoundError:
        return position
    with file:
        file.seek(position)
        while lines := file.readlines(_CHUNK):
            for text in lines:
                if not text.endswith(b"\n"):
                    return position
                position += len(text)
                await connection.send(parse(text))
    return position
