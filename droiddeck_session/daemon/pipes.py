# SPDX-License-Identifier: GPL-3.0-or-later
"""The protocol over a pair of pipes, as an app has them that starts `droiddeck-session host`.

Requests are answered beside each other; each line of an answer carries the request's `id`.
"""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio

from droiddeck_session.daemon.connection import ConnectionLostError
from droiddeck_session.daemon.protocol import LONGEST_LINE, ProtocolError, line

if TYPE_CHECKING:
    from collections.abc import Mapping

_CHUNK: Final = 65536


class Client(Protocol):
    """What a verb needs of whoever asked."""

    descriptors: list[int]

    async def line(self) -> bytes:
        """Return the client's next line; raises ConnectionLostError, ProtocolError."""
        ...

    async def send(self, document: Mapping[str, Any]) -> None:
        """Send one line; raises ConnectionLostError."""
        ...

    def take(self) -> list[int]:
        """Return the descriptors that came with the request."""
        ...


class PipeConnection:
    """Requests from one descriptor, answers to another.

    Args:
        reader: a pipe or socket.
        writer: another, or the same.
    """

    def __init__(self, reader: int, writer: int) -> None:
        self._reader = reader
        self._writer = writer
        self._rest = b""
        self._sending = anyio.Lock()
        self.descriptors: list[int] = []

    def take(self) -> list[int]:
        """Return no descriptors: a pipe carries none."""
        return []

    async def line(self) -> bytes:
        """Return the next line without its end.

        Raises:
            ProtocolError: it is too long.
            ConnectionLostError: the other end was closed.
        """
        while b"\n" not in self._rest:
            if len(self._rest) > LONGEST_LINE:
                raise ProtocolError(code="LINE_TOO_LONG", message=f"a line of more than {LONGEST_LINE} bytes")
            await anyio.wait_readable(self._reader)
            chunk = os.read(self._reader, _CHUNK)
            if not chunk:
                raise ConnectionLostError
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\n")
        return text

    async def send(self, document: Mapping[str, Any]) -> None:
        """Send one line, whole lines only.

        Raises:
            ConnectionLostError: nobody reads any more.
        """
        async with self._sending:
            left = memoryview(line(document))
            while left:
                await anyio.wait_writable(self._writer)
                try:
                    # Of a pipe that can be written to, so much can be written without waiting (pipe(7)).
                    left = left[os.write(self._writer, left[: select.PIPE_BUF]) :]
                except OSError:
                    raise ConnectionLostError from None


class Tagged:
    """One request's view of a connection: what is sent carries its `id`.

    Args:
        connection: the connection.
        number: the request's `id`, any JSON value; None for none.
    """

    def __init__(self, connection: PipeConnection, number: object) -> None:
        self._connection = connection
        self._tag = {} if number is None else {"id": number}
        self.descriptors: list[int] = []

    def take(self) -> list[int]:
        """Return no descriptors."""
        return []

    async def line(self) -> bytes:
        """Refuse: further lines are further requests.

        Raises:
            ConnectionLostError: always.
        """
        raise ConnectionLostError

    async def send(self, document: Mapping[str, Any]) -> None:
        """Send one line; raises as the connection does."""
        await self._connection.send({**document, **self._tag})
