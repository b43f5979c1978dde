# SPDX-License-Identifier: GPL-3.0-or-later
"""The client's side of the control protocol, with the standard library alone: a verb through the daemon is quick."""

from __future__ import annotations

import os
import socket
import struct
from typing import TYPE_CHECKING, Any, Final, Self

from droiddeck_session.daemon import place
from droiddeck_session.daemon.protocol import LONGEST_LINE, PROTOCOL, DaemonError, error_of, line, parse
from droiddeck_session.errors import NotPermittedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_CHUNK: Final = 65536
# unix(7): struct ucred is pid, uid, gid.
_UCRED: Final = struct.Struct("=iII")


class Client:
    """One connection; a context.

    Args:
        environ: the caller's environment, which says where the daemon is.

    Raises:
        DaemonError: no daemon can be reached.
        NotPermittedError: another user's program listens there.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        path = place.socket_path(environ)
        self._socket = place.connect(path)
        self._rest = b""
        _, uid, _ = _UCRED.unpack(self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
        if uid not in {os.geteuid(), 0}:
            self._socket.close()
            raise NotPermittedError(
                code="FOREIGN_DAEMON",
                message=f"what listens at {str(path)!r} is of user {uid}, not yours",
                hint="set XDG_RUNTIME_DIR to a folder of your own",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._socket.close()

    def fileno(self) -> int:
        """Return the connection's descriptor."""
        return self._socket.fileno()

    def send(self, document: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
        """Send one line, and descriptors with its first byte.

        Raises:
            DaemonError: the daemon went away.
        """
        text = line(document)
        try:
            sent = socket.send_fds(self._socket, [text], list(descriptors)) if descriptors else 0
            self._socket.sendall(text[sent:])
        except (BrokenPipeError, ConnectionResetError):
            # Its reason, if it gave one, is still to be read.
            return

    def request(self, verb: str, descriptors: Sequence[int] = (), /, **fields: Any) -> None:
        """Send a request, whose lines `lines` or `answer` reads."""
        self.send({"protocol": PROTOCOL, "verb": verb, **fields}, descriptors)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield each line as it comes, the answer last.

        Raises:
            DaemonError: the daemon went away before its answer.
            RemoteError: the answer is an error.
            ProtocolError: what came is no line of the protocol.
        """
        while True:
            document = parse(self._line())
            if document.get("ok") is False:
                raise error_of(document)
            yield document
            if "ok" in document:
                return

    def answer(self) -> dict[str, Any]:
        """Return the answer, without what came before it; raises as `lines` does."""
        *_, last = self.lines()
        return last

    def _line(self) -> bytes:
        while b"\n" not in self._rest:
            try:
                chunk = self._socket.recv(_CHUNK)
            except ConnectionResetError:
                chunk = b""
            if not chunk or len(self._rest) > LONGEST_LINE:
                raise DaemonError(
                    code="DAEMON_GONE",
                    message="the daemon closed the connection before it answered",
                    hint="look into its log; what it ran is ended by its supervisors, or by the next start",
                )
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\n")
        return text


def call(environ: Mapping[str, str], verb: str, /, **fields: Any) -> dict[str, Any]:
    """Ask the daemon for one thing and return its answer, without `schema` and `ok`.

    Raises:
        DroiddeckError: it cannot be reached, or says that it failed.
    """
    with Client(environ) as client:
        client.request(verb, **fields)
        answer = client.answer()
    return {name: value for name, value in answer.items() if name not in {"schema", "ok"}}
