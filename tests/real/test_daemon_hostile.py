# SPDX-License-Identifier: GPL-3.0-or-later
"""Hostile clients of the daemon's socket: each is refused by name or cut off, and the daemon serves on as before."""

from __future__ import annotations

import json
import os
import pwd
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from daemons import Daemon
from supervised import until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.real
STATUS = b'{"protocol": 1, "verb": "status"}\n'


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with Daemon(tmp_path) as one:
        session = one.start("sleep", "1000")
        before = one.descriptors()
        yield one
        assert one.state_of(session) == "ready"
        until(lambda: one.descriptors() <= before, f"at most {before} descriptors, as before")


REFUSED: list[tuple[bytes, str]] = [
    (b"\n", "NOT_AN_OBJECT"),
    (b"null\n", "NOT_AN_OBJECT"),
    (b"\x00\xff\xfe\n", "NOT_AN_OBJECT"),
    (b"[" * 100_000 + b"\n", "NOT_AN_OBJECT"),
    (b'{"verb": "status"}\n', "UNKNOWN_PROTOCOL"),
    (b'{"protocol": 2, "verb": "status"}\n', "UNKNOWN_PROTOCOL"),
    (b'{"protocol": true, "verb": "status"}\n', "UNKNOWN_PROTOCOL"),
    (b'{"protocol": 1}\n', "NO_VERB"),
    (b'{"protocol": 1, "verb": ["status"]}\n', "NO_VERB"),
    (b'{"protocol": 1, "verb": "__class__"}\n', "UNKNOWN_VERB"),
    (b'{"protocol": 1, "verb": "status", "more": 1}\n', "UNKNOWN_FIELD"),
    (b'{"protocol": 1, "verb": "status", "session": 7}\n', "INVALID_FIELD"),
    (b'{"protocol": 1, "verb": "wait", "for": "ever"}\n', "INVALID_FIELD"),
    (b'{"protocol": 1, "verb": "wait", "for": "failed", "timeout": -1}\n', "INVALID_FIELD"),
    (b'{"protocol": 1, "verb": "wait", "for": "failed", "timeout": NaN}\n', "INVALID_FIELD"),
    (b'{"protocol": 1, "verb": "wait", "for": "failed", "timeout": 0.01}\n', "TIMEOUT"),
    (b'{"protocol": 1, "verb": "stop", "session": "../../etc"}\n', "NO_SUCH_SESSION"),
    (b'{"protocol": 1, "verb": "start", "kind": "shell"}\n', "INVALID_FIELD"),
    (b'{"protocol": 1, "verb": "start", "kind": "run", "argv": [1]}\n', "INVALID_REQUEST"),
    (b'{"protocol": 1, "verb": "start", "kind": "run", "umask": 99999}\n', "INVALID_REQUEST"),
    (b'{"protocol": 1, "verb": "start", "kind": "run", "binds": ["relative"]}\n', "BIND_SYNTAX"),
    (b'{"protocol": 1, "verb": "start", "kind": "run", "flags": {"guest.name": {}}}\n', "INVALID_REQUEST"),
    (b'{"protocol": 1, "verb": "start", "kind": "run", "flags": {"no.such": 1}}\n', "UNKNOWN_KEY"),
    (b'{"protocol": 1, "verb": "start", "kind": "run", "environ": {"A": "a\\u0000b"}}\n', "INVALID_REQUEST"),
    (b'{"protocol": 1, "verb": "start", "kind": "run", "environ": {"A=B": ""}}\n', "INVALID_REQUEST"),
    (b'{"protocol": 1, "verb": "start", "kind": "run", "attach": true}\n', "NO_DESCRIPTORS"),
    (b'{"protocol": 1, "verb": "execute", "argv": []}\n', "INVALID_FIELD"),
    (b'{"protocol": 1, "verb": "execute", "argv": ["true"]}\n', "NO_DESCRIPTORS"),
]


@pytest.mark.parametrize(("text", "code"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_makes_no_sense_is_refused_by_name(shared: Daemon, text: bytes, code: str) -> None:
    assert shared.ask(text)["error"]["code"] == code


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("daemon")) as one:
        session = one.start("sleep", "1000")
        yield one
        assert one.state_of(session) == "ready"


def test_a_line_without_an_end_is_cut_off(daemon: Daemon) -> None:
    with daemon.connect() as half:
        half.sendall(b'{"protocol": 1')
        # Meanwhile others are served.
        assert daemon.ask(STATUS)["ok"] is True
        # After 5 s the connection is closed without a word.
        assert half.recv(1) == b""


def test_a_line_of_a_hundred_megabytes_is_refused_before_it_is_read(daemon: Daemon) -> None:
    before = resident(daemon)
    answer = daemon.ask(b"x" * 100_000_000)
    assert answer == {} or answer["error"]["code"] == "LINE_TOO_LONG"
    assert resident(daemon) - before < 30_000_000
    assert daemon.ask(STATUS)["ok"] is True


def test_a_thousand_connections_leave_the_daemon_as_it_was(daemon: Daemon) -> None:
    connections: list[socket.socket] = []
    try:
        connections += [daemon.connect() for _ in range(1000)]
    finally:
        for connection in connections:
            connection.close()
    assert until(lambda: daemon.ask(STATUS).get("ok"), "it answers") is True


def test_who_asks_and_goes_away_costs_nothing(daemon: Daemon) -> None:
    for _ in range(50):
        with daemon.connect() as connection:
            connection.sendall(b'{"protocol": 1, "verb": "wait", "for": "failed", "timeout": 0.2}\n')
    assert daemon.ask(STATUS)["ok"] is True


@pytest.mark.parametrize("number", [1, 2, 3, 30])
def test_descriptors_that_were_not_asked_for_are_refused_and_closed(daemon: Daemon, number: int) -> None:
    reader, writer = os.pipe()
    try:
        answer = daemon.ask(STATUS, [writer] * number)
        expected = {"UNEXPECTED_DESCRIPTORS"} if number <= 3 else {"TOO_MANY_DESCRIPTORS", "UNEXPECTED_DESCRIPTORS"}
        assert answer["error"]["code"] in expected
        os.close(writer)
        writer = -1
        # The end of the pipe is seen only once the daemon holds no copy.
        assert os.read(reader, 1) == b""
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)


def test_a_reader_that_never_reads_does_not_hold_up_others(daemon: Daemon) -> None:
    with daemon.connect() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        silent.sendall(b'{"protocol": 1, "verb": "events", "follow": true}\n')
        assert daemon.ask(STATUS)["ok"] is True
        assert daemon.json("stop", daemon.start("sleep", "1001"))["state"] == "stopped"


def test_another_user_is_refused(tmp_path: Path) -> None:
    stranger = pwd.getpwnam("nobody")
    with Daemon(tmp_path) as daemon:
        # Even where the folder's mode does not keep him out.
        for folder in (daemon.control, *daemon.control.parents):
            if folder.is_relative_to(tmp_path.parent) or folder == tmp_path.parent:
                folder.chmod(folder.stat().st_mode | 0o777)
        ask = f"""
import socket
one = socket.socket(socket.AF_UNIX)
one.connect({os.path.relpath(daemon.control, tmp_path)!r})
one.sendall({STATUS!r})
print(one.recv(65536).decode())
"""
        done = subprocess.run(
            [sys.executable, "-c", ask], user=stranger.pw_uid, group=stranger.pw_gid, extra_groups=[],
            cwd=tmp_path, capture_output=True, timeout=50, check=False,
        )  # fmt: skip
        answer: dict[str, Any] = json.loads(done.stdout)
        assert answer["error"]["code"] == "FOREIGN_USER"
        assert daemon.ask(STATUS)["ok"] is True


def resident(daemon: Daemon) -> int:
    return int(Path(f"/proc/{daemon.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
