# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading /proc/PID/stat, and identity: laws and this machine's own processes."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droiddeck_session.session.membership import (
    Identity,
    Membership,
    children,
    every_process,
    parse_stat,
    read_stat,
    reap_adopted,
    send,
)

TAIL = b" S 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 2600960 168"


@given(st.binary(max_size=15).filter(lambda name: b"\0" not in name))
def test_a_name_may_hold_anything(name: bytes) -> None:
    process = parse_stat(b"42 (" + name + b")" + TAIL)
    assert process is not None
    assert process.identity == Identity(42, 12345)
    assert (process.state, process.parent, process.group, process.session) == ("S", 7, 8, 9)
    assert os.fsencode(process.name) == name


@pytest.mark.parametrize("text", [b"", b"42", b"42 (sh", b"42 (sh) S 1", b"x (sh)" + TAIL])
def test_a_text_that_is_no_stat_is_nothing(text: bytes) -> None:
    assert parse_stat(text) is None


def test_we_find_ourselves_and_our_parent() -> None:
    ourselves = read_stat(os.getpid())
    assert ourselves is not None
    assert ourselves.parent == os.getppid()
    assert ourselves.group == os.getpgrp()
    assert every_process()[os.getpid()].identity == ourselves.identity


def test_a_pid_with_another_start_time_is_not_signalled() -> None:
    with subprocess.Popen(["sleep", "600"]) as program:
        stat = read_stat(program.pid)
        assert stat is not None
        assert not send(Identity(program.pid, stat.identity.start + 1), signal.SIGKILL)
        assert program.poll() is None
        assert send(stat.identity, signal.SIGKILL)
        assert program.wait() == -signal.SIGKILL
    assert not send(stat.identity, signal.SIGKILL)


def test_a_zombie_is_no_living_member_and_is_reaped_unless_spoken_for() -> None:
    with subprocess.Popen(["true"]) as program:
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
        assert program.pid in children(os.getpid())
        assert program.pid not in [member.pid for member in Membership("none", ancestor=os.getpid()).living()]
        reap_adopted(spoken_for=children(os.getpid()))
        assert read_stat(program.pid) is not None
        reap_adopted(spoken_for=set(children(os.getpid())) - {program.pid})
        assert read_stat(program.pid) is None


def test_the_token_makes_a_member_and_a_longer_one_does_not() -> None:
    programs = [subprocess.Popen(["sleep", "600"], env={"DROIDDECK_SESSION": token}) for token in ("abc", "abcd")]
    try:
        assert [member.pid for member in Membership("abc", ancestor=None).living()] == [programs[0].pid]
    finally:
        for program in programs:
            program.kill()
            program.wait()


def test_who_was_a_member_once_stays_one() -> None:
    with subprocess.Popen(["sh", "-c", "read line; exec env -i sleep 600"], stdin=subprocess.PIPE,
                          env={"DROIDDECK_SESSION": "once", "PATH": os.environ["PATH"]}) as program:  # fmt: skip
        membership = Membership("once", ancestor=None)
        assert [member.pid for member in membership.living()] == [program.pid]
        assert program.stdin is not None
        program.stdin.write(b"go\n")
        program.stdin.flush()
        while (stat := read_stat(program.pid)) is None or stat.name != "sleep":
            pass
        assert [member.pid for member in membership.living()] == [program.pid]
        assert Membership("once", ancestor=None).living() == []
        program.kill()
