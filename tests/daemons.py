# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives a real daemon in folders of a test's own, and speaks its protocol byte by byte where a test needs that."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from supervised import carriers, environment, until

if TYPE_CHECKING:
    from collections.abc import Sequence

STOPPED_AT_LAST = 40.0


class Daemon:
    """A daemon of the direct backend, and its command line; a context, which ends it and checks that nothing is left.

    Args:
        folder: where its state, cache, runtime folder and home go.
        data: where guests are.
        settings: what is set by environment variables, as `SESSION_GRACE`.
    """

    def __init__(self, folder: Path, data: Path | None = None, /, **settings: str) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.log = folder / "daemon.log"
        self.runtime = folder / "run"
        self.runtime.mkdir(parents=True, exist_ok=True)
        chosen = {"BACKEND_NAME": "direct", "SESSION_GRACE": "0.2", "SESSION_LINGER": "0.2", **settings}
        self.environ = {
            name: value for name, value in environment().items() if not name.startswith(("DROIDDECK_", "XDG_"))
        } | {
            "HOME": str(folder),
            "XDG_DATA_HOME": str(data or folder / "data"),
            "XDG_STATE_HOME": str(self.state),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_RUNTIME_DIR": str(self.runtime),
            **{f"DROIDDECK_{name}": value for name, value in chosen.items()},
        }
        self.prefix: list[str] = []
        self.process: subprocess.Popen[bytes]

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOPPED_AT_LAST)
            finally:
                # pytest's own time limit may come first; without its daemon each session ends.
                self.process.kill()
                self.process.wait()
        assert b"Traceback" not in self.log.read_bytes(), self.log.read_text()

    def begin(self, **options: Any) -> None:
        """Start it, and wait until it listens."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, *self.argv("daemon")], env=self.environ, stderr=log, **options
            )
        until(lambda: self.process.poll() is not None or self.reachable(), "the daemon listens")

    def reachable(self) -> bool:
        """Whether somebody listens."""
        with contextlib.suppress(OSError), self.connect():
            return True
        return False

    @property
    def control(self) -> Path:
        """Where it listens."""
        return self.runtime / "droiddeck-session" / "control"

    def argv(self, *arguments: str) -> list[str]:
        """Return the command line of a verb."""
        return [sys.executable, "-m", "droiddeck_session", *arguments]

    def __call__(self, *arguments: str, status: int | None = 0, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """Run one verb to its end, and check its status."""
        done = subprocess.run(
            self.argv(*arguments), env=self.environ, capture_output=True, timeout=50, check=False, **options
        )
        assert status is None or done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *arguments: str, status: int | None = 0) -> dict[str, Any]:
        """Run one verb with --json and return its answer."""
        answer: dict[str, Any] = json.loads(self(*arguments, "--json", status=status).stdout)
        return answer

    def start(self, *argv: str, wait: bool = True) -> str:
        """Start a program and return its session."""
        session: str = self.json_start(*(["--wait"] if wait else []), "--", *argv)["session"]
        return session

    def json_start(self, *arguments: str, status: int | None = 0) -> dict[str, Any]:
        """Start a session with options of its own; --json comes before the program."""
        answer: dict[str, Any] = json.loads(self("start", "run", "--json", *arguments, status=status).stdout)
        return answer

    def state_of(self, session: str) -> str:
        """Return a session's state."""
        state: str = self.json("status", session)["sessions"][0]["state"]
        return state

    def events(self, session: str) -> list[dict[str, Any]]:
        """Return a session's events, from its folder."""
        return [json.loads(line) for line in (self.path(session) / "events.jsonl").read_text().splitlines()]

    def endings(self, session: str) -> list[str]:
        """Return the final events of a session; there shall be one."""
        return [event["event"] for event in self.events(session) if event["event"] in ENDINGS]

    def path(self, session: str) -> Path:
        """Return a session's folder."""
        return self.state / "droiddeck-session" / "sessions" / session

    def token(self, session: str) -> str:
        """Return a session's membership token, from the note in its lock."""
        note: dict[str, Any] = json.loads((self.path(session) / "lock").read_text())
        return str(note["token"])

    def members(self, session: str) -> list[int]:
        """Return the living processes that carry a session's token."""
        return carriers(f"DROIDDECK_SESSION={self.token(session)}")

    def worker(self, session: str) -> int:
        """Return the pid of a session's supervisor."""
        pid: int = self.json("status", session)["sessions"][0]["pid"]
        return pid

    def connect(self) -> socket.socket:
        """Connect to its socket."""
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self.control))
            connection.settimeout(30)
        except OSError:
            connection.close()
            raise
        return connection

    def ask(self, text: bytes, descriptors: Sequence[int] = ()) -> dict[str, Any]:
        """Send bytes and return the answer; empty where the connection was closed without one."""
        with self.connect() as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                sent = socket.send_fds(connection, [text], list(descriptors)) if descriptors else 0
                connection.sendall(text[sent:])
            with connection.makefile("rb") as lines:
                try:
                    last = lines.readline()
                except ConnectionResetError:
                    last = b""
        answer: dict[str, Any] = json.loads(last) if last else {}
        return answer

    def descriptors(self) -> int:
        """Return how many descriptors the daemon has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def kill(self) -> None:
        """Kill the daemon as the kernel does when memory is short."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


ENDINGS = frozenset({"session.stopped", "session.failed"})
