# SPDX-License-Identifier: GPL-3.0-or-later
"""processes.converse: a program that prints lines and waits for answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from droiddeck_session import processes

ENV = {"PATH": os.environ["PATH"]}


def converse(
    script: str, answers: dict[bytes, bytes], time_limit: float = 30
) -> tuple[processes.Completed, list[bytes]]:
    heard: list[bytes] = []

    def reply(line: bytes) -> bytes:
        heard.append(line)
        return answers.get(line, b"")

    done = processes.converse(["sh", "-c", script], reply=reply, time_limit=time_limit, env=ENV, cwd="/")
    return done, heard


def test_lines_are_answered_in_turn() -> None:
    script = "echo one; read a; echo two; echo $a; read b; echo $b; exit 3"
    done, heard = converse(script, {b"one": b"first\n", b"first": b"second\n"})
    assert heard == [b"one", b"two", b"first", b"second"]
    assert done.returncode == 3


def test_what_it_says_of_its_end_is_kept() -> None:
    done, _ = converse("echo broken >&2; kill -9 $$", {})
    assert (done.returncode, done.stderr) == (-9, b"broken\n")


def test_a_program_that_waits_forever_is_ended_by_the_time_limit() -> None:
    done, heard = converse("echo one; read never; echo two", {}, time_limit=0.2)
    assert done.timed_out
    assert heard == [b"one"]


def test_what_it_leaves_in_its_group_is_ended_when_the_answering_fails() -> None:
    children: list[int] = []

    def reply(line: bytes) -> bytes:
        children.append(int(line))
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        processes.converse(["sh", "-c", "sleep 1000 & echo $!; wait"], reply=reply, time_limit=30, env=ENV, cwd="/")
    state = Path(f"/proc/{children[0]}/stat")
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}:
        pass


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(processes.ProcessError, match="no-such-program"):
        processes.converse(["no-such-program"], reply=lambda _: b"", time_limit=1, env=ENV, cwd="/")
