# SPDX-License-Identifier: GPL-3.0-or-later
"""The sessions of one daemon: each a worker process, its channel and its place in the state machine."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from droiddeck_session.daemon.channel import Orders, lines
from droiddeck_session.daemon.protocol import RemoteError, StateError, error_of, line, parse
from droiddeck_session.errors import EXIT_OWN_FAILURE, EXIT_SESSION_STATE, DroiddeckError
from droiddeck_session.session import states
from droiddeck_session.session.folder import finish_abandoned
from droiddeck_session.session.freezer import remove_left
from droiddeck_session.session.wait_status import has_ended

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from anyio.abc import TaskGroup

    from droiddeck_session.daemon.spawning import Spawner
    from droiddeck_session.session.states import Report, Request, State

# What a session's events say of its state.
_REPORTS: Final[dict[str, Report]] = {
    "guest.started": "begun",
    "session.ready": "ready",
    "session.suspended": "frozen",
    "session.resumed": "thawed",
    "session.stopping": "stopping",
    "session.killing": "stopping",
}
_REMEMBERED: Final = 20
# What a person is told besides the events; more of it is in the log.
_MOST_TOLD: Final = 100


@dataclass
class Place:
    """Where one session after another runs; sessions of `run` have one each."""

    life: states.Life = field(default_factory=states.Life)


@dataclass(eq=False)
class Session:
    """One generation of a place, and its worker.

    Attributes:
        id: its folder's name; empty until it has one.
        state: as the state machine has it; frozen with the generation's end.
        failure: code, message and status of what went wrong; None for a session that ended as it should.
        freezes_failed: how often suspending has failed.
        told: lines for the person who started it.
        changed: set at the next change, and then another one.
    """

    place: Place
    generation: int
    kind: str
    guest: str
    pid: int
    pidfd: int
    channel: socket.socket
    orders: Orders = field(default_factory=Orders)
    started: float = field(default_factory=time.time)
    id: str = ""
    folder: str = ""
    state: State = "preparing"
    was_ready: bool = False
    backend: str = ""
    guest_pid: int | None = None
    status: int | None = None
    failure: dict[str, Any] | None = None
    error: RemoteError | None = None
    told: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST_TOLD))
    executed: dict[int, dict[str, Any]] = field(default_factory=dict)
    freezes_failed: int = 0
    changed: anyio.Event = field(default_factory=anyio.Event)
    over: anyio.Event = field(default_factory=anyio.Event)

    def notify(self) -> None:
        """Wake those who wait for a change."""
        self.changed.set()
        self.changed = anyio.Event()

    def describe(self) -> dict[str, Any]:
        """Return what `status` tells."""
        names = ("id", "kind", "guest", "state", "generation", "backend", "folder", "pid", "guest_pid", "status")
        return {name: getattr(self, name) for name in names} | {
            "was_ready": self.was_ready,
            "started": int(self.started * 1000),
            "failure": self.failure,
        }


class Sessions:
    """All sessions: those that live, and the last ones that ended.

    Args:
        spawner: makes workers.
        tasks: where each session is followed.
    """

    def __init__(self, spawner: Spawner, tasks: TaskGroup) -> None:
        self._spawner = spawner
        self._tasks = tasks
        self._places: dict[tuple[str, str], Place] = {}
        self._keys = 0
        self.live: list[Session] = []
        self.ended: deque[Session] = deque(maxlen=_REMEMBERED)
        self.closing = False

    async def start(self, request: Mapping[str, Any], stdio: Sequence[int]) -> Session:
        """Start a session and return it as soon as it has a worker.

        Args:
            request: what the worker is asked for; `kind` and `flags` have been looked at.
            stdio: its descriptors 0 to 2.

        Raises:
            StateError: SESSION_ACTIVE; or the daemon is about to end.
            DaemonError: no worker can be made.
        """
        if self.closing:
            raise StateError(code="DAEMON_STOPPING", message="the daemon is about to end", hint="start it again")
        kind, guest = request["kind"], str(request["flags"].get("guest.name", ""))
        place = Place() if kind == "run" else self._places.setdefault((kind, guest), Place())
        step = states.ask(place.life, "start")
        if step.refusal:
            raise StateError(
                code=step.refusal.code,
                message=f"start {kind}: {step.refusal.message}",
                hint="stop it first, or keep it with --reuse",
            )
        place.life = step.life
        ours, theirs = socket.socketpair()
        try:
            pid, pidfd = await self._spawner.spawn((theirs.fileno(), *stdio))
        except BaseException:
            place.life = states.tell(place.life, place.life.generation, "failed").life
            ours.close()
            raise
        finally:
            theirs.close()
        ours.settimeout(0)
        session = Session(
            place=place, generation=place.life.generation, kind=kind, guest=guest, pid=pid, pidfd=pidfd, channel=ours
        )
        self.live.append(session)
        session.orders.add(line(request))
        self._tasks.start_soon(self._follow, session)
        return session

    def find(self, name: str) -> Session:
        """Return the session of an id, of the beginning of one, or `latest`; without a name the only one that lives.

        Raises:
            StateError: there is none, or several.
        """
        known = [*self.ended, *self.live]
        if name == "latest" and known:
            return max(known, key=lambda session: session.started)
        found = [session for session in known if session.id.startswith(name)] if name else list(self.live)
        exact = [session for session in found if session.id == name]
        found = exact or found
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(session.id for session in found)
            raise StateError(code="SEVERAL_SESSIONS", message=f"several sessions are meant: {ids}", hint="name one")
        if name:
            raise StateError(
                code="NO_SUCH_SESSION", message=f"no session {name!r}", hint="see: droiddeck-session status"
            )
        raise StateError(
            code="NO_ACTIVE_SESSION",
            message="no session runs",
            hint="start one: droiddeck-session start run -- PROGRAM",
        )

    def ask(self, session: Session, request: Request) -> None:
        """Ask a session for something; its worker does it.

        Raises:
            StateError: that makes no sense now.
        """
        step = states.ask(session.place.life, request)
        if session.generation != session.place.life.generation or session.state in states.OVER:
            step = states.ask(states.Life(session.generation, session.state), request)
        if step.refusal:
            raise StateError(code=step.refusal.code, message=f"{session.id or session.kind}: {step.refusal.message}")
        self._settle(session, step.life)
        if step.action:
            if step.action in {"stop", "kill"} and not session.guest_pid:
                # It may be busy with what comes before the start and not listen yet. The order comes after the signal:
                # a worker that listens already gets both at once, which is one request (signals.py).
                self._signal(session)
            session.orders.add(line({"do": step.action}))
        session.notify()

    def signal(self, session: Session, signum: int) -> None:
        """Hand a signal of the session's client to its supervisor, which treats it as one of its own."""
        session.orders.add(line({"do": "signal", "signal": signum}))

    def order(self, session: Session, descriptors: Sequence[int] = (), **order: Any) -> int:
        """Ask the worker of a session that runs for something with an answer, and return its key in `executed`.

        Raises:
            StateError: the session does not run.
        """
        if session.state not in {"starting", "ready"}:
            raise StateError(
                code="SESSION_NOT_READY", message=f"{session.id or session.kind}: the session is {session.state}"
            )
        self._keys += 1
        session.orders.add(line({"key": self._keys, **order}), descriptors)
        return self._keys

    async def stop_all(self) -> None:
        """Ask all sessions to end and wait until they have; called again, it ends them at once."""
        request: Request = "kill" if self.closing else "stop"
        self.closing = True
        for session in self.live:
            self.ask(session, request)
        for session in list(self.live):
            await session.over.wait()

    def _signal(self, session: Session) -> None:
        try:
            signal.pidfd_send_signal(session.pidfd, signal.SIGTERM)
        except ProcessLookupError:
            return

    async def _follow(self, session: Session) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.orders.send_all, session.channel)
                async for told in lines(session.channel):
                    self._heed(session, parse(told))
                    session.notify()
                tasks.cancel_scope.cancel()
            if not has_ended(session.pidfd):
                await anyio.wait_readable(session.pidfd)
            if session.status is None:
                await self._recover(session)
            report: Report = "failed" if session.failure or session.error else "ended"
            self._settle(session, states.tell(session.place.life, session.generation, report).life)
        finally:
            os.close(session.pidfd)
            session.orders.close()
            session.channel.close()
            self.live.remove(session)
            if session.id:
                self.ended.append(session)
            session.over.set()
            session.notify()

    def _heed(self, session: Session, told: Mapping[str, Any]) -> None:
        if "made" in told:
            session.id, session.folder = told["made"]["session"], told["made"]["folder"]
        elif "event" in told:
            self._heed_event(session, told["event"])
        elif "tell" in told:
            session.told.append(told["tell"])
        elif "executed" in told:
            session.executed[told["executed"]] = dict(told)
        elif "over" in told:
            session.status = told["over"]
        elif told.get("ok") is False:
            session.error = error_of(told)
            session.failure = {"code": session.error.code, "message": session.error.message, "status": None}

    def _heed_event(self, session: Session, event: Mapping[str, Any]) -> None:
        name = event["event"]
        if name == "guest.started":
            session.guest_pid, session.backend = event["pid"], event["backend"]
        elif name == "session.suspend_failed":
            session.freezes_failed += 1
        elif name == "session.failed" and session.failure is None:
            session.failure = {name: event.get(name) for name in ("code", "message", "status")}
        if name in _REPORTS:
            self._settle(session, states.tell(session.place.life, session.generation, _REPORTS[name]).life)

    def _settle(self, session: Session, life: states.Life) -> None:
        if session.generation == life.generation and session.state not in states.OVER:
            session.place.life = life
            session.state, session.was_ready = life.state, life.was_ready

    async def _recover(self, session: Session) -> None:
        """End what a worker left that died without a word."""
        self._settle(session, states.tell(session.place.life, session.generation, "lost").life)
        session.notify()
        message = "the session's supervisor was killed; what it left was ended"
        if session.folder:
            try:
                recovered = await anyio.to_thread.run_sync(finish_abandoned, Path(session.folder))
            except OSError as error:
                message = f"the session's supervisor was killed, and its folder cannot be read: {error.strerror}"
            else:
                remove_left(session.id)
                if recovered and recovered.survivors:
                    message += f"; these processes could not be ended: {', '.join(recovered.survivors)}"
        session.status = EXIT_OWN_FAILURE
        session.failure = {"code": "SUPERVISOR_DIED", "message": message, "status": EXIT_OWN_FAILURE}


async def wait_until(session: Session, condition: Callable[[Session], bool]) -> None:
    """Wait until a condition of a session holds, which is looked at whenever the session changes."""
    while not condition(session):
        await session.changed.wait()


def failed(session: Session) -> DroiddeckError:
    """Return the error that says how a session failed."""
    if session.error:
        return session.error
    failure = session.failure or {"code": "SESSION_ENDED", "message": "the session has ended"}
    return RemoteError(
        code=str(failure["code"]),
        message=f"{session.id or session.kind}: {failure['message']}",
        hint=f"droiddeck-session logs {session.id}" if session.id else "",
        exit_status=EXIT_SESSION_STATE,
    )
