# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that supervises one session for the daemon: what a foreground verb does, driven through a socket.

The channel carries JSON lines. To here: the request, then `{"do": ...}`. From here: `made`, `event`, `tell`,
`executed`, `error`, and at last `over` with the status. Where the daemon is gone, the session is asked to end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import anyio
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from droiddeck_session import interruption
from droiddeck_session.daemon.protocol import LONGEST_LINE, STDIO, ProtocolError, failure, line, parse
from droiddeck_session.errors import EXIT_OWN_FAILURE, EXIT_SIGNAL_BASE, DroiddeckError
from droiddeck_session.plan.model import Kind, OsText
from droiddeck_session.plan.request import from_words
from droiddeck_session.session.client import require_app_id
from droiddeck_session.session.launch import launch
from droiddeck_session.session.output import OUTPUT, Output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from droiddeck_session.session.control import DrivenSession
    from droiddeck_session.session.folder import SessionFolder
    from droiddeck_session.settings import SessionSettings

_CHUNK: Final = 65536
# A daemon that takes nothing for so long is as good as gone.
_PATIENCE: Final = 5.0
_MIB: Final = 1 << 20


def _nameable(name: str) -> str:
    if not name or "=" in name:
        raise ValueError("is no name of a variable")
    return name


VariableText = Annotated[OsText, AfterValidator(_nameable)]


class StartRequest(BaseModel):
    """What a client asks for with `start`.

    Attributes:
        kind: run, steam or desktop.
        argv, url, binds, ro_binds, variables, cwd: as the foreground verbs have them.
        flags: settings, by dotted key.
        environ: the client's environment.
        directory: the client's working directory.
        umask: the client's file mode mask.
        output: `given`: descriptors came with the request; `log`: what the session prints goes to its folder.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    argv: tuple[OsText, ...] = ()
    url: OsText | None = None
    binds: tuple[OsText, ...] = ()
    ro_binds: tuple[OsText, ...] = ()
    variables: tuple[OsText, ...] = ()
    cwd: OsText | None = None
    flags: dict[str, bool | int | float | str] = {}
    environ: dict[VariableText, OsText]
    directory: OsText = "/"
    umask: Annotated[int, Field(ge=0, le=0o777)] = 0o022
    output: Literal["given", "log"] = "log"


class Channel:
    """The worker's end of the channel: a `Control` of its session.

    Args:
        connection: a connected stream socket.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._rest = b""
        self._lost = False
        self._descriptors: list[int] = []
        self._catch_output = False
        self.output: Output | None = None
        connection.settimeout(_PATIENCE)

    def say(self, **fields: Any) -> None:
        """Send one line, unless the daemon is gone."""
        if not self._lost:
            try:
                self._socket.sendall(line(fields))
            except OSError:
                self._lost = True

    def tell(self, text: str) -> None:
        """Hand on a line for the person who started the session."""
        self.say(tell=text)

    def request(self) -> StartRequest:
        """Read the request.

        Raises:
            ProtocolError: it is none.
        """
        while b"\n" not in self._rest:
            chunk = self._socket.recv(_CHUNK)
            if not chunk or len(self._rest) > LONGEST_LINE:
                raise ProtocolError(code="NO_REQUEST", message="the request ended before its line did")
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\n")
        try:
            request = StartRequest.model_validate(parse(text))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ProtocolError(
                code="INVALID_REQUEST", message=f"start: {where}: {first['msg']}", hint="see docs/daemon.md"
            ) from None
        self._catch_output = request.output == "log"
        return request

    def folder_made(self, folder: SessionFolder, settings: SessionSettings) -> None:
        """Tell where the session's folder is, and each event from now on; catch what the session prints."""
        self.say(made={"session": folder.id, "folder": os.fspath(folder.path)})
        folder.events.listener = lambda event: self.say(event=event)
        if self._catch_output:
            self.output = Output(folder.path / OUTPUT, settings.output_limit * _MIB)
            for descriptor in (1, 2):
                os.dup2(self.output.writer, descriptor)

    async def drive(self, session: DrivenSession) -> None:
        """Do what the daemon asks for, each thing beside the others, until the session ends."""
        self._socket.settimeout(None)
        async with anyio.create_task_group() as tasks:
            while (text := await self._next_line()) is not None:
                order = parse(text)
                match order.get("do"):
                    case "stop":
                        tasks.start_soon(session.stop)
                    case "kill":
                        session.kill()
                    case "suspend":
                        tasks.start_soon(session.suspend)
                    case "resume":
                        tasks.start_soon(session.resume)
                    case "signal":
                        os.kill(os.getpid(), order["signal"])
                    case "execute":
                        tasks.start_soon(self._execute, session, order)
                    case "launch" | "quit":
                        tasks.start_soon(self._ask_client, session, order)
            self._lost = True
            await session.stop()

    async def _execute(self, session: DrivenSession, order: Mapping[str, Any]) -> None:
        (first, second, third), self._descriptors = self._descriptors[:STDIO], self._descriptors[STDIO:]
        try:
            status = await session.execute(order["argv"], (first, second, third))
        except DroiddeckError as error:
            self.say(executed=order["key"], **failure(error))
        else:
            self.say(executed=order["key"], ok=True, status=status.status)

    async def _ask_client(self, session: DrivenSession, order: Mapping[str, Any]) -> None:
        try:
            client, app = session.steam(), require_app_id(order["app"])
            told = await (client.ask(f"steam://rungameid/{app}") if order["do"] == "launch" else client.quit(app))
        except DroiddeckError as error:
            self.say(executed=order["key"], **failure(error))
        else:
            self.say(executed=order["key"], ok=True, status=told)

    async def _next_line(self) -> bytes | None:
        while b"\n" not in self._rest:
            await anyio.wait_readable(self._socket)
            try:
                chunk, descriptors, _, _ = socket.recv_fds(self._socket, _CHUNK, STDIO)
            except OSError:
                return None
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)  # noqa: FBT003 - os has no name for it
            self._descriptors += descriptors
            if not chunk:
                return None
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\n")
        return text


def work(connection: socket.socket, stdio: tuple[int, int, int]) -> int:
    """Run the session that the channel asks for and return its exit status.

    Args:
        connection: the channel.
        stdio: the session's descriptors 0 to 2.
    """
    for number, descriptor in enumerate(stdio):
        os.dup2(descriptor, number)
        os.close(descriptor)
    channel = Channel(connection)
    status = EXIT_OWN_FAILURE
    try:
        interruption.tidy_up_first()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, interruption.REQUESTS)
        request = channel.request()
        _become(request)
        wanted = from_words(
            request.kind, argv=request.argv, url=request.url, binds=request.binds, ro_binds=request.ro_binds,
            variables=request.variables, cwd=request.cwd,
        )  # fmt: skip
        status = launch(wanted, request.flags, environ=request.environ, tell=channel.tell, control=channel)
    except DroiddeckError as error:
        channel.say(**failure(error))
    except SystemExit as asked:
        status = asked.code if isinstance(asked.code, int) else EXIT_OWN_FAILURE
    except Exception as error:  # noqa: BLE001 - whatever it is, whoever asked is told
        # A library may make another exception of our SystemExit.
        if (signum := interruption.asked()) is not None:
            status = EXIT_SIGNAL_BASE + signum
        else:
            message = f"a fault of ours: {type(error).__name__}: {error}"
            channel.say(**failure(ProtocolError(code="INTERNAL_ERROR", message=message, hint="please report it")))
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        if channel.output:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for number in (1, 2):
                os.dup2(nowhere, number)
            channel.output.close()
    channel.say(over=status)
    return status


def _become(request: StartRequest) -> None:
    """Take on what a program inherits of the client: environment, mask and working directory."""
    os.environ.clear()
    os.environ.update(request.environ)
    os.umask(request.umask)
    with contextlib.suppress(OSError):
        # A folder that is gone is no reason not to run: the program's own is the guest's.
        os.chdir(request.directory)
    sys.stdout = sys.stderr = None  # this process prints nothing
