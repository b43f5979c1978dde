# SPDX-License-Identifier: GPL-3.0-or-later
"""The daemon as a service: datagrams to the manager, a socket that is passed, units, and one client on pipes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from daemons import Daemon
from supervised import running

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "systemd").glob("droiddeck-session.*"))


class Manager:
    """A service manager's end of sd_notify."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address.replace("@", "\0", 1))
        self.socket.settimeout(30)

    def until(self, assignment: str) -> dict[str, str]:
        """Return the assignments of the first datagram that has this one."""
        while True:
            lines = self.socket.recv(4096).decode().split("\n")
            if assignment in lines:
                return dict(line.split("=", 1) for line in lines)


@contextlib.contextmanager
def managed(tmp_path: Path, address: str, **variables: str) -> Iterator[tuple[Daemon, Manager]]:
    manager = Manager(address)
    daemon = Daemon(tmp_path)
    daemon.environ |= {"NOTIFY_SOCKET": address, **variables}
    with manager.socket, daemon:
        yield daemon, manager


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_the_manager_is_told_of_readiness_sessions_and_the_end(tmp_path: Path, kind: str) -> None:
    address = str(tmp_path / "notify") if kind == "path" else f"@droiddeck-test-{os.getpid()}"
    with managed(tmp_path, address) as (daemon, manager):
        assert manager.until("READY=1")["MAINPID"] == str(daemon.process.pid)
        daemon.start("sleep", "1000")
        manager.until("STATUS=1 session")
        daemon.process.send_signal(signal.SIGHUP)
        assert int(manager.until("RELOADING=1")["MONOTONIC_USEC"]) > 0
        manager.until("READY=1")
        # What ran goes on, and what comes is started by the new code.
        daemon.start("sleep", "1000")
        manager.until("STATUS=2 sessions")
        daemon.process.terminate()
        manager.until("STOPPING=1")


def test_the_watchdog_is_fed(tmp_path: Path) -> None:
    with managed(tmp_path, str(tmp_path / "notify"), WATCHDOG_USEC="100000") as (_, manager):
        for _ in range(3):
            manager.until("WATCHDOG=1")


def test_a_watchdog_of_another_process_is_not_fed(tmp_path: Path) -> None:
    with managed(tmp_path, str(tmp_path / "notify"), WATCHDOG_USEC="1000", WATCHDOG_PID="1") as (daemon, manager):
        manager.until("READY=1")
        daemon.process.terminate()
        while (datagram := manager.socket.recv(4096)) and b"STOPPING=1" not in datagram:
            assert b"WATCHDOG" not in datagram


def test_no_program_of_a_session_is_told_of_the_manager(tmp_path: Path) -> None:
    with managed(tmp_path, str(tmp_path / "notify")) as (daemon, _):
        daemon.start("sleep", "1000")
        for process in daemon.json("ps")["processes"]:
            assert b"NOTIFY_SOCKET" not in Path(f"/proc/{process['pid']}/environ").read_bytes()


def as_activated(daemon: Daemon, passed: socket.socket, *, count: int = 1, pid: str = "$$") -> list[str]:
    """Return a command line that passes a socket as systemd does."""
    passing = f"exec 3<&{passed.fileno()}" if passed.fileno() != 3 else ":"
    return ["bash", "-c", f'{passing}; LISTEN_FDS={count} LISTEN_PID={pid} exec "$@"', "bash", *daemon.argv("daemon")]


def test_a_socket_that_systemd_passes_is_served_and_left_in_place(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    daemon.control.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(daemon.control))
        listener.listen()
        # A client that comes before the daemon is served too.
        early = subprocess.Popen(daemon.argv("status", "--json"), env=daemon.environ, stdout=subprocess.PIPE)
        with daemon.log.open("ab") as log:
            daemon.process = subprocess.Popen(
                as_activated(daemon, listener), env=daemon.environ, stderr=log, pass_fds=[listener.fileno()]
            )
        assert json.loads(early.communicate(timeout=50)[0])["daemon"]["pid"] == daemon.process.pid
        daemon.start("sleep", "1000")
        for process in daemon.json("ps")["processes"]:
            assert b"LISTEN_" not in Path(f"/proc/{process['pid']}/environ").read_bytes()
        daemon.__exit__()
        assert daemon.control.exists()


def test_a_passed_socket_that_does_not_listen_is_refused(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as odd:
        done = subprocess.run(
            as_activated(daemon, odd), env=daemon.environ, capture_output=True, pass_fds=[odd.fileno()], timeout=50,
            check=False,
        )  # fmt: skip
    assert (done.returncode, b"PASSED_SOCKET" in done.stderr) == (2, True)


def test_a_socket_that_was_passed_to_another_process_is_not_ours(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    daemon.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": "1"}
    with daemon:
        assert daemon.json("status")["sessions"] == []


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    program = tmp_path / "droiddeck-session"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for unit in UNITS:
        text = unit.read_text().replace("/usr/bin/droiddeck-session", str(program))
        (tmp_path / unit.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", *(str(tmp_path / unit.name) for unit in UNITS)],
        capture_output=True, text=True, env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}, timeout=50, check=False,
    )  # fmt: skip
    ours = [line for line in done.stderr.splitlines() if "droiddeck" in line]
    assert (done.returncode, ours) == (0, [])


class Host:
    """`droiddeck-session host`, and its one client."""

    def __init__(self, folder: Path) -> None:
        daemon = Daemon(folder)
        self.environ = daemon.environ
        self.process = subprocess.Popen(
            daemon.argv("host"), env=daemon.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.waiting: list[dict[str, Any]] = []

    def say(self, **request: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"protocol": 1, **request}).encode() + b"\n")
        self.process.stdin.flush()

    def line(self, number: object) -> dict[str, Any]:
        """Return the next line that carries an id; others wait."""
        assert self.process.stdout
        while True:
            for told in self.waiting:
                if told.get("id") == number:
                    self.waiting.remove(told)
                    return told
            self.waiting.append(json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            assert stream
            stream.close()
        self.process.wait(50)


def test_a_host_answers_requests_beside_each_other_and_ends_with_its_client(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.say(id=1, verb="start", kind="run", argv=["sleep", "1044"], environ=host.environ)
    session = host.line(1)["session"]
    host.say(id="two", verb="events", session=session, follow=True)
    assert host.line("two")["event"] == "session.created"
    host.say(id=3, verb="status")
    assert host.line(3)["sessions"][0]["id"] == session
    host.say(id=4, verb="no such verb")
    assert host.line(4)["error"]["code"] == "UNKNOWN_VERB"
    host.say(verb="wait", **{"for": "ready"})
    assert host.line(None)["state"] == "ready"
    host.close()
    assert host.process.returncode == 0
    assert running("sleep", "1044") == []


@pytest.mark.parametrize("text", [b"not json\n", b'{"protocol": 2, "verb": "status"}\n', b"\xff\xfe\n", b"[]\n", b"\n"])
def test_a_host_survives_what_is_no_request(tmp_path: Path, text: bytes) -> None:
    host = Host(tmp_path)
    assert host.process.stdin
    host.process.stdin.write(text)
    host.process.stdin.flush()
    assert host.line(None)["ok"] is False
    host.say(id=1, verb="status")
    assert host.line(1)["ok"] is True
    host.close()


def test_the_example_client_runs_a_session(tmp_path: Path) -> None:
    environ = Daemon(tmp_path).environ
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "examples" / "host_client.py", sys.executable, "-m", "droiddeck_session", "--",
         "sh", "-c", "exit 5"],
        env=environ, capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert (done.returncode, "session.ready" in done.stdout) == (5, True), done.stdout + done.stderr


@pytest.mark.parametrize("redirection", ["</dev/null", "> out"])
def test_a_host_without_a_client_at_its_other_end_says_so(tmp_path: Path, redirection: str) -> None:
    daemon = Daemon(tmp_path)
    words = ["bash", "-c", f'exec "$@" {redirection}', "bash", *daemon.argv("host")]
    done = subprocess.run(
        words, env=daemon.environ, input=b"", capture_output=True, cwd=tmp_path, timeout=50, check=False
    )
    assert (done.returncode, b"[NOT_A_PIPE]" in done.stderr) == (2, True), done.stderr
