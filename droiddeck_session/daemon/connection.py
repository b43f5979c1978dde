# SPDX-License-Identifier: GPL-3.0-or-later
"""One client's connection, seen from the daemon: who it is, its lines and descriptors, and limits on all of them."""

from __future__ import annotations

import os
import select
import socket
import struct
from typing import TYPE_CHECKING, Any, Final

import anyio

from droiddeck_session.daemon.protocol import LONGEST_LINE, STDIO, ProtocolError, line
from droiddeck_session.errors import NotPermittedError

if TYPE_CHECKING:
    from collections.abc import Mapping

# unix(7): struct ucred is pid, uid, gid.
_UCRED: Final = struct.Struct("=iII")
_CHUNK: Final = 65536
# What a client that does not read may hold up.
SEND_LIMIT: Final = 10.0


class ConnectionLostError(Exception):
    """The client went away, or does not read what it asked for."""


class Connection:
    """A connection that was accepted.

    Args:
        connection: the socket; closed by `close`.

    Attributes:
        descriptors: what came with the request; those that nobody takes are closed with the connection.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(0)
        self._socket = connection
        self._rest = b""
        self.descriptors: list[int] = []

    def check_peer(self) -> None:
        """See that the client is this user.

        Raises:
            NotPermittedError: it is another one.
        """
        _, uid, _ = _UCRED.unpack(self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
        if uid != os.geteuid():
            raise NotPermittedError(
                code="FOREIGN_USER",
                message=f"this daemon serves user {os.geteuid()}, not user {uid}",
                hint="start a daemon of your own: droiddeck-session daemon",
            )

    def close(self) -> None:
        """Close the connection and what nobody has taken of it."""
        self._socket.close()
        for descriptor in self.take():
            os.close(descriptor)

    def take(self) -> list[int]:
        """Return the descriptors that came; they are the caller's from now on."""
        taken, self.descriptors = self.descriptors, []
        return taken

    async def line(self, *, longest: int = LONGEST_LINE) -> bytes:
        """Return the next line without its end.

        Raises:
            ProtocolError: it is too long, or more descriptors came than are ever asked for.
            ConnectionLostError: the client went away before its end.
        """
        while b"\n" not in self._rest:
            if len(self._rest) > longest:
                raise ProtocolError(code="LINE_TOO_LONG", message=f"a line of more than {longest} bytes")
            await anyio.wait_readable(self._socket)
            try:
                chunk, descriptors, flags, _ = socket.recv_fds(self._socket, _CHUNK, STDIO)
            except BlockingIOError:
                continue
            except OSError:
                raise ConnectionLostError from None
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)  # noqa: FBT003 - os has no name for it
            self.descriptors += descriptors
            if flags & socket.MSG_CTRUNC or len(self.descriptors) > STDIO:
                raise ProtocolError(
                    code="TOO_MANY_DESCRIPTORS", message=f"more than {STDIO} descriptors came with a request"
                )
            if not chunk:
                raise ConnectionLostError
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\n")
        return text

    async def gone(self) -> None:
        """Return once the client has closed the connection; what it sends besides its request is dropped.

        A client that only says that it will send no more (shutdown(2)) still waits for its answer.
        """
        ended = False
        while not ended:
            await anyio.wait_readable(self._socket)
            try:
                ended = not self._socket.recv(_CHUNK)
            except BlockingIOError:
                continue
            except OSError:
                return
        hang_up = select.poll()
        hang_up.register(self._socket, 0)
        if not hang_up.poll(0):
            await anyio.sleep_forever()

    async def send(self, document: Mapping[str, Any]) -> None:
        """Send one line.

        Raises:
            ConnectionLostError: the client went away, or did not read for too long.
        """
        left = memoryview(line(document))
        with anyio.move_on_after(SEND_LIMIT):
            while left:
                try:
                    left = left[self._socket.send(left) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._socket)
                except OSError:
                    raise ConnectionLostError from None
            return
        raise ConnectionLostError
