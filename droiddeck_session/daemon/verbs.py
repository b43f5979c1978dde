# SPDX-License-Identifier: GPL-3.0-or-later
"""What the daemon can be asked for: a table of verbs, each with the fields it takes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio

from droiddeck_session import __version__
from droiddeck_session.daemon import measures, streams
from droiddeck_session.daemon.connection import ConnectionLostError
from droiddeck_session.daemon.protocol import (
    PROTOCOL,
    STDIO,
    ProtocolError,
    StateError,
    TimeoutReachedError,
    error_of,
    parse,
    success,
)
from droiddeck_session.daemon.sessions import failed, wait_until
from droiddeck_session.session.states import OVER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from droiddeck_session.daemon.pipes import Client
    from droiddeck_session.daemon.server import Server
    from droiddeck_session.daemon.sessions import Session

    Answer = dict[str, Any]
    Handler = Callable[[Server, Client, Mapping[str, Any]], Awaitable[Answer]]

_LONGEST_WAIT: Final = 86400.0
_KINDS: Final = ("run", "steam", "desktop")
# What starts a session and is not the session's own business.
_OURS: Final = frozenset({"protocol", "verb", "reuse", "attach"})
_WAITS: Final = {"ready": frozenset({"ready"}), "idle": OVER, "failed": frozenset({"failed"})}


@dataclass(frozen=True)
class Verb:
    """One verb.

    Attributes:
        handler: answers it.
        fields: the fields it takes, each with the types it may have.
        descriptors: how many descriptors come with it, at most.
    """

    handler: Handler
    fields: Mapping[str, tuple[type, ...]]
    descriptors: int = 0


async def answer(server: Server, connection: Client, request: Mapping[str, Any]) -> Answer:
    """Answer a request.

    Raises:
        ProtocolError: it is none that this daemon knows.
        DroiddeckError: what was asked for failed.
        ConnectionLostError: the client went away meanwhile.
    """
    name = request["verb"]
    verb = VERBS.get(name)
    if verb is None:
        raise ProtocolError(code="UNKNOWN_VERB", message=f"no verb {name!r}", hint=f"known: {', '.join(VERBS)}")
    if len(connection.descriptors) not in {0, verb.descriptors}:
        raise ProtocolError(
            code="UNEXPECTED_DESCRIPTORS",
            message=f"{name}: {len(connection.descriptors)} descriptors came, {verb.descriptors} are taken",
        )
    for field, value in request.items():
        kinds = verb.fields.get(field) if field not in {"protocol", "verb"} else (object,)
        if kinds is None:
            raise ProtocolError(code="UNKNOWN_FIELD", message=f"{name}: no field {field!r}", hint="see docs/daemon.md")
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds and object not in kinds):
            raise ProtocolError(code="INVALID_FIELD", message=f"{name}: field {field!r} has a value of another type")
    return await verb.handler(server, connection, request)


def listens(request: Mapping[str, Any]) -> bool:
    """Whether the verb reads on while it works: then it notices itself when its client goes away."""
    return request["verb"] == "start" and bool(request.get("attach"))


async def _start(server: Server, connection: Client, request: Mapping[str, Any]) -> Answer:
    if request.get("kind") not in _KINDS:
        raise ProtocolError(code="INVALID_FIELD", message=f"start: kind is one of {', '.join(_KINDS)}")
    wanted = {name: value for name, value in request.items() if name not in _OURS} | {
        "flags": request.get("flags", {}),
        "environ": request.get("environ", {}),
    }
    guest = str(wanted["flags"].get("guest.name", ""))
    if request.get("reuse"):
        for session in server.sessions.live:
            if (session.kind, session.guest) == (request["kind"], guest) and session.state not in {*OVER, "stopping"}:
                return success(session=session.id, state=session.state, reused=True)
    attach = bool(request.get("attach"))
    if attach and len(connection.descriptors) != STDIO:
        raise ProtocolError(code="NO_DESCRIPTORS", message="start: attach takes descriptors 0 to 2 of the client")
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    stdio = connection.take() if connection.descriptors else []
    try:
        given = "given" if stdio else "log"
        session = await server.sessions.start({**wanted, "output": given}, stdio or [nowhere] * STDIO)
    finally:
        for descriptor in (nowhere, *stdio):
            os.close(descriptor)
    return await (_attended(server, connection, session) if attach else _begun(session))


async def _begun(session: Session) -> Answer:
    await wait_until(session, lambda now: now.state != "preparing" or now.over.is_set())
    # What failed before the program ran is the answer to the start.
    if session.state == "stopping" and session.guest_pid is None:
        await session.over.wait()
    if session.over.is_set() and session.guest_pid is None:
        raise failed(session)
    return success(session=session.id, state=session.state, reused=False, told=list(session.told))


async def _attended(server: Server, connection: Client, session: Session) -> Answer:
    """Stay with a session: hand signals to it, its lines to the client, and its status as the answer."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_heed_client, server, connection, session)
        while True:
            ended = session.over.is_set()
            while session.told:
                await connection.send({"tell": session.told.popleft()})
            if ended:
                break
            await session.changed.wait()
        tasks.cancel_scope.cancel()
    if session.error:
        raise session.error
    return success(session=session.id, status=session.status)


async def _heed_client(server: Server, connection: Client, session: Session) -> None:
    try:
        while True:
            order = parse(await connection.line())
            if isinstance(order.get("signal"), int):
                server.sessions.signal(session, order["signal"])
    except (ConnectionLostError, ProtocolError):
        if session.state not in OVER:
            server.sessions.ask(session, "stop")


async def _ask(server: Server, _: Client, request: Mapping[str, Any]) -> Answer:
    what: Literal["stop", "kill", "suspend", "resume"] = request["verb"]
    session = server.sessions.find(request.get("session", ""))
    goals = {"stop": OVER, "kill": OVER, "suspend": {"suspended"}, "resume": {"ready", "starting"}}
    freezes_failed = session.freezes_failed
    server.sessions.ask(session, what)
    limit = _limit(request)
    with anyio.move_on_after(limit):
        await wait_until(
            session,
            lambda now: now.state in goals[what] or now.over.is_set() or now.freezes_failed != freezes_failed,
        )
        if what in {"stop", "kill"}:
            await session.over.wait()
        if what == "suspend" and session.state != "suspended":
            raise failed(session) if session.over.is_set() else _moving(session)
        return success(session=session.id, state=session.state, status=session.status)
    raise _late(f"{what}: session {session.id} is {session.state}", limit)


async def _wait(server: Server, _: Client, request: Mapping[str, Any]) -> Answer:
    goal = request.get("for")
    if goal not in _WAITS:
        raise ProtocolError(code="INVALID_FIELD", message=f"wait: for is one of {', '.join(_WAITS)}")
    if goal == "idle" and not request.get("session") and not server.sessions.live:
        return success(session="", state="idle", status=None)
    session = server.sessions.find(request.get("session", ""))
    limit = _limit(request)
    with anyio.move_on_after(limit):
        await wait_until(session, lambda now: now.state in _WAITS[goal] or now.over.is_set())
        if session.state not in _WAITS[goal]:
            raise failed(session)
        return success(session=session.id, state=session.state, status=session.status)
    raise _late(f"wait {goal}: session {session.id} is {session.state}", limit)


async def _status(server: Server, _: Client, request: Mapping[str, Any]) -> Answer:
    wanted = request.get("session", "")
    sessions = [server.sessions.find(wanted)] if wanted else [*server.sessions.ended, *server.sessions.live]
    return success(
        daemon={
            "pid": os.getpid(),
            "spawner": server.spawner.pid,
            "version": __version__,
            "protocol": PROTOCOL,
        },
        sessions=[session.describe() for session in sessions],
    )


async def _ps(server: Server, _: Client, request: Mapping[str, Any]) -> Answer:
    session = server.sessions.find(request.get("session", ""))
    return success(session=session.id, processes=await anyio.to_thread.run_sync(measures.processes, session))


async def _stats(server: Server, _: Client, request: Mapping[str, Any]) -> Answer:
    session = server.sessions.find(request.get("session", ""))
    return success(session=session.id, state=session.state, **await anyio.to_thread.run_sync(measures.stats, session))


async def _events(server: Server, connection: Client, request: Mapping[str, Any]) -> Answer:
    session = server.sessions.find(request.get("session", ""))
    await streams.events(connection, session, follow=bool(request.get("follow")))
    return success(session=session.id, state=session.state)


async def _execute(server: Server, connection: Client, request: Mapping[str, Any]) -> Answer:
    session = server.sessions.find(request.get("session", ""))
    argv = request.get("argv", [])
    if not argv or not all(isinstance(word, str) for word in argv) or any("\0" in word for word in argv):
        raise ProtocolError(code="INVALID_FIELD", message="execute: argv is a list of texts without NUL, not empty")
    if len(connection.descriptors) != STDIO:
        raise ProtocolError(code="NO_DESCRIPTORS", message="execute: takes descriptors 0 to 2 of the client")
    stdio = connection.take()
    try:
        key = server.sessions.order(session, stdio, do="execute", argv=argv)
    finally:
        for descriptor in stdio:
            os.close(descriptor)
    return success(session=session.id, status=await _told(session, key))


async def _launch(server: Server, _: Client, request: Mapping[str, Any]) -> Answer:
    session = server.sessions.find(request.get("session", ""))
    limit = _limit(request)
    if session.state == "suspended":
        server.sessions.ask(session, "resume")
    with anyio.move_on_after(limit):
        await wait_until(session, lambda now: now.state == "ready" or now.over.is_set())
        key = server.sessions.order(session, do="launch", app=request.get("app", ""))
        status = await _told(session, key)
        if status != 0:
            raise StateError(
                code="LAUNCH_REJECTED",
                message=f"{session.id}: the client did not take the request (status {status})",
                hint=f"droiddeck-session logs {session.id}",
            )
        return success(session=session.id, state=session.state)
    raise _late(f"launch: session {session.id} is {session.state}", limit)


async def _quit(server: Server, _: Client, request: Mapping[str, Any]) -> Answer:
    session = server.sessions.find(request.get("session", ""))
    key = server.sessions.order(session, do="quit", app=request.get("app", ""))
    return success(session=session.id, state=session.state, processes=await _told(session, key))


async def _told(session: Session, key: int) -> int:
    """Wait for what a worker has been asked for and return its status.

    Raises:
        DroiddeckError: it failed, or the session has ended meanwhile.
    """
    await wait_until(session, lambda now: key in now.executed or now.over.is_set())
    told = session.executed.pop(key, None)
    if told is None:
        raise failed(session)
    if not told.get("ok"):
        raise error_of(told)
    status: int = told["status"]
    return status


def _limit(request: Mapping[str, Any]) -> float:
    limit = request.get("timeout", _LONGEST_WAIT)
    if not 0 <= limit <= _LONGEST_WAIT:
        raise ProtocolError(code="INVALID_FIELD", message=f"timeout is 0 to {_LONGEST_WAIT:.0f} seconds")
    return float(limit)


def _moving(session: Session) -> StateError:
    return StateError(
        code="NOT_SUSPENDED",
        message=f"{session.id}: some of its processes could not be stopped, so all run on",
        hint=f"droiddeck-session events {session.id} names them",
    )


def _late(what: str, limit: float) -> TimeoutReachedError:
    return TimeoutReachedError(code="TIMEOUT", message=f"{what}, after {limit:g} s", hint="give a longer --timeout")


_SESSION: Final[dict[str, tuple[type, ...]]] = {"session": (str,)}
_TIMEOUT: Final[dict[str, tuple[type, ...]]] = {"timeout": (int, float)}
_START: Final[dict[str, tuple[type, ...]]] = {
    "kind": (str,), "argv": (list,), "url": (str, type(None)), "binds": (list,), "ro_binds": (list,),
    "variables": (list,), "cwd": (str, type(None)), "flags": (dict,), "environ": (dict,), "directory": (str,),
    "umask": (int,), "reuse": (bool,), "attach": (bool,),
}  # fmt: skip
VERBS: Final[dict[str, Verb]] = {
    "start": Verb(_start, _START, descriptors=STDIO),
    "stop": Verb(_ask, _SESSION | _TIMEOUT),
    "kill": Verb(_ask, _SESSION | _TIMEOUT),
    "suspend": Verb(_ask, _SESSION | _TIMEOUT),
    "resume": Verb(_ask, _SESSION | _TIMEOUT),
    "wait": Verb(_wait, {**_SESSION, **_TIMEOUT, "for": (str,)}),
    "status": Verb(_status, _SESSION),
    "ps": Verb(_ps, _SESSION),
    "stats": Verb(_stats, _SESSION),
    "events": Verb(_events, {**_SESSION, "follow": (bool,)}),
    "launch": Verb(_launch, {**_SESSION, **_TIMEOUT, "app": (str,)}),
    "quit": Verb(_quit, {**_SESSION, "app": (str,)}),
    "execute": Verb(_execute, {**_SESSION, "argv": (list,)}, descriptors=STDIO),
}
