# SPDX-License-Identifier: GPL-3.0-or-later
"""The daemon's loop: it accepts connections, answers one request on each, and ends when it is asked to."""

from __future__ import annotations

import contextlib
import resource
import signal
from typing import TYPE_CHECKING, Any, Final

import anyio

from droiddeck_session.daemon import verbs
from droiddeck_session.daemon.connection import Connection, ConnectionLostError
from droiddeck_session.daemon.pipes import PipeConnection, Tagged
from droiddeck_session.daemon.protocol import DaemonError, ProtocolError, failure, parse_request
from droiddeck_session.daemon.sessions import Sessions
from droiddeck_session.daemon.spawning import Spawner
from droiddeck_session.errors import DroiddeckError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

    from anyio.abc import TaskStatus

    from droiddeck_session.daemon.notify import Notifier

# Seconds in which a client must have sent its request.
REQUEST_LIMIT: Final = 5.0
# More than any user's tools hold; each costs a descriptor and some memory.
MOST_CONNECTIONS: Final = 256
_STOPS: Final = (signal.SIGTERM, signal.SIGINT)


class Server:
    """One daemon.

    Args:
        environ: its environment.
        notifier: tells systemd how it is.
        tell: gets each line for whoever reads the daemon's log.
    """

    def __init__(self, environ: Mapping[str, str], notifier: Notifier, tell: Callable[[str], None]) -> None:
        self._environ = environ
        self._notifier = notifier
        self._tell = tell
        self._connections = 0
        self.spawner = Spawner(environ)
        self.sessions: Sessions
        self._ending = anyio.Event()

    async def run(self, listener: socket.socket | None, first: PipeConnection | None = None) -> None:
        """Serve until a signal, or the end of `first`, asks for the end, and all sessions have ended.

        Args:
            listener: a socket that listens; None to serve `first` alone.
            first: a connection that is there already, whose end is a request to end.
        """
        _raise_limit()
        async with anyio.create_task_group() as tasks:
            self.sessions = Sessions(self.spawner, tasks)
            self.spawner.begin()
            # Before anybody is told that we are ready: whoever is may ask us to end.
            await tasks.start(self._heed_signals)
            tasks.start_soon(self._notifier.keep_alive)
            if listener:
                listener.settimeout(0)
                tasks.start_soon(self._accept, listener)
            if first:
                tasks.start_soon(self._serve_all, first)
            self._notifier.ready(self.sessions.live)
            await self._ending.wait()
            await self.sessions.stop_all()
            tasks.cancel_scope.cancel()
        self.spawner.end()

    async def _heed_signals(self, *, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(*_STOPS, signal.SIGHUP) as arrivals:
            task_status.started()
            async for signum in arrivals:
                if signum == signal.SIGHUP:
                    self._reload()
                else:
                    await self._end(signal.Signals(signum).name)

    def _reload(self) -> None:
        """Load the code anew that runs sessions; settings and tables are read at each start anyway."""
        self._notifier.reloading()
        self.spawner.end()
        self.spawner.begin()
        self._tell("reloaded")
        self._notifier.ready(self.sessions.live)

    async def _end(self, why: str) -> None:
        self._tell(f"{why}: ending {len(self.sessions.live)} sessions")
        self._notifier.stopping()
        if self._ending.is_set():
            await self.sessions.stop_all()
        self._ending.set()

    async def _accept(self, listener: socket.socket) -> None:
        async with anyio.create_task_group() as tasks:
            while True:
                await anyio.wait_readable(listener)
                try:
                    accepted, _ = listener.accept()
                except BlockingIOError:
                    continue
                except OSError as error:
                    # Out of descriptors: those that are there end; to try at once again would only turn in circles.
                    self._tell(f"cannot accept a connection: {error.strerror}")
                    await anyio.sleep(0.1)
                    continue
                tasks.start_soon(self._serve, Connection(accepted))

    async def _serve(self, connection: Connection) -> None:
        self._connections += 1
        try:
            await self._answer(connection)
        except ConnectionLostError:
            return
        finally:
            self._connections -= 1
            connection.close()

    async def _serve_all(self, connection: PipeConnection) -> None:
        """Answer requests beside each other; the connection's end is a request to end."""
        async with anyio.create_task_group() as tasks:
            try:
                while True:
                    tasks.start_soon(self._answer_tagged, connection, await connection.line())
            except ProtocolError as error:
                await connection.send(failure(error))
            except ConnectionLostError:
                pass
            await self._end("the client is gone")

    async def _answer_tagged(self, connection: PipeConnection, text: bytes) -> None:
        tagged: Tagged | PipeConnection = connection
        try:
            request = parse_request(text)
            tagged = Tagged(connection, request.pop("id", None))
            answer = await verbs.answer(self, tagged, request)
        except ConnectionLostError:
            return
        except DroiddeckError as error:
            answer = failure(error)
        with contextlib.suppress(ConnectionLostError):
            await tagged.send(answer)

    async def _answer(self, connection: Connection) -> None:
        try:
            connection.check_peer()
            if self._connections > MOST_CONNECTIONS:
                raise DaemonError(code="BUSY", message="the daemon has too many connections", hint="try again")
            with anyio.move_on_after(REQUEST_LIMIT) as waiting:
                text = await connection.line()
            if waiting.cancelled_caught:
                return
            answer = await self._while_there(connection, parse_request(text))
        except DroiddeckError as error:
            answer = failure(error)
        await connection.send(answer)
        self._notifier.status(self.sessions.live)

    async def _while_there(self, connection: Connection, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a request; give up when the client goes away, unless the verb listens to it itself.

        Raises:
            DroiddeckError: what was asked for failed.
            ConnectionLostError: the client went away.
        """
        if verbs.listens(request):
            return await verbs.answer(self, connection, request)
        answer: dict[str, Any] | None = None

        async def give_up() -> None:
            await connection.gone()
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(give_up)
            try:
                answer = await verbs.answer(self, connection, request)
            except DroiddeckError as error:
                # Not out of the group, which would make a group of it.
                answer = failure(error)
            except ConnectionLostError:
                answer = None
            tasks.cancel_scope.cancel()
        if answer is None:
            raise ConnectionLostError
        return answer


def _raise_limit() -> None:
    """Allow ourselves as many descriptors as the administrator does."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
