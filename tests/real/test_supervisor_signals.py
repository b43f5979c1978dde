# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals to the supervisor reach the program once, and a second request ends the session."""

from __future__ import annotations

import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from supervised import (
    BACKENDS,
    BWRAP,
    PROOT_COMMAND,
    Supervised,
    environment,
    state_of,
    until,
)

from droiddeck_session.session.signals import ONE_REQUEST

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.real


ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]
# Signals that are closer together than signals.ONE_REQUEST count as one.
APART = 1.5 * ONE_REQUEST


def listening(tmp_path: Path, answer: str) -> list[str]:
    """A program that writes the file `up` when it listens, notes each signal in `got` and answers as told."""
    got, up = tmp_path / "got", tmp_path / "up"
    traps = f"trap 'echo got >> {got}; {answer}' INT TERM HUP QUIT"
    return ["bash", "-c", f"{traps}; echo up > {up}; while :; do sleep 0.05; done"]


def count(tmp_path: Path) -> int:
    """How often the program has noted a signal."""
    return len((tmp_path / "got").read_text().splitlines()) if (tmp_path / "got").exists() else 0


@pytest.mark.parametrize("signum", ENDING)
@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_a_signal_is_forwarded_once_and_the_programs_answer_counts(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any], signum: int
) -> None:
    session = Supervised(
        tmp_path / "state", listening(tmp_path, "sleep 0.3; exit 9"), wrapper=wrapper, capabilities=capabilities
    ).start()
    session.wait_for(tmp_path / "up")
    session.send(signum)
    assert session.wait() == 9
    assert count(tmp_path) == 1
    assert session.members() == []
    assert session.event("signal.forwarded")["signal"] == signal.Signals(signum).name


@pytest.mark.parametrize("signum", ENDING)
@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_a_second_signal_ends_a_program_that_will_not(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any], signum: int
) -> None:
    session = Supervised(
        tmp_path / "state", listening(tmp_path, ":"), wrapper=wrapper, capabilities=capabilities
    ).start()
    session.wait_for(tmp_path / "up")
    session.send(signum)
    until(lambda: count(tmp_path) == 1, "the first signal")
    session.event("signal.forwarded")
    time.sleep(APART)
    session.send(signum)
    assert session.wait() in {137, 125 if wrapper == PROOT_COMMAND else 137}
    assert session.event("session.killing")["reason"].startswith("a second request")
    assert session.members() == []


def test_int_and_quit_are_left_to_the_program(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", listening(tmp_path, ":"), grace=0.3).start()
    session.wait_for(tmp_path / "up")
    session.send(signal.SIGINT)
    until(lambda: count(tmp_path) == 1, "the signal")
    session.event("signal.forwarded")
    assert "session.stopping" not in [event["event"] for event in session.events()]
    assert session.running.poll() is None
    session.send(signal.SIGTERM)
    assert session.wait() == 137
    assert session.event("session.killing")["reason"] == "the grace time is over"


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_a_stop_request_kills_after_the_grace_time(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any], signum: int
) -> None:
    script = f"trap '' TERM HUP; (trap '' TERM HUP; sleep 600) & setsid sleep 600 & echo up > {tmp_path}/up; sleep 600"
    session = Supervised(
        tmp_path / "state", ["bash", "-c", script], wrapper=wrapper, capabilities=capabilities, grace=0.3, linger=600
    ).start()
    session.wait_for(tmp_path / "up")
    session.send(signum)
    session.wait()
    assert session.members() == []
    assert session.event("session.killing")["reason"] == "the grace time is over"
    names = [event["event"] for event in session.events()]
    assert names.index("signal.forwarded") < names.index("session.killing")
    assert names[-1] == "session.stopped"


def test_a_signal_that_is_sent_twice_at_once_is_one_request(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", listening(tmp_path, "sleep 0.5; exit 9"))
    # timeout(1) sends the signal to its child and again to its group.
    done = subprocess.run(
        ["timeout", "--preserve-status", "2", *session.argv], env=environment(), timeout=30, check=False
    )
    assert done.returncode == 9


@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_usr_signals_and_winch_are_relayed_every_time(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any]
) -> None:
    got, up = tmp_path / "got", tmp_path / "up"
    traps = " ".join(f"trap 'echo {name} >> {got}' {name};" for name in ("USR1", "USR2", "WINCH"))
    script = f"{traps} trap 'exit 9' TERM; echo up > {up}; while :; do sleep 0.05; done"
    session = Supervised(tmp_path / "state", ["bash", "-c", script], wrapper=wrapper, capabilities=capabilities).start()
    session.wait_for(up)
    for number, name in enumerate(["USR1", "USR2", "WINCH", "USR1"], 1):
        session.send(getattr(signal, f"SIG{name}"))
        until(lambda number=number: got.exists() and len(got.read_text().split()) == number, name)  # type: ignore[misc]
    assert got.read_text().split() == ["USR1", "USR2", "WINCH", "USR1"]
    session.send(signal.SIGTERM)
    assert session.wait() == 9


@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_tstp_stops_the_program_and_the_supervisor_and_cont_continues_both(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any]
) -> None:
    mark = tmp_path / "pid"
    script = f"echo $$ > {mark}; while :; do sleep 0.05; done"
    session = Supervised(tmp_path / "state", ["bash", "-c", script], wrapper=wrapper, capabilities=capabilities)
    # With its parent outside its group, or the kernel would not stop it.
    session.start(process_group=0)
    program = int(session.wait_for(mark))
    session.send(signal.SIGTSTP)
    until(lambda: state_of(program) in {"T", "t"}, "the program stopped")
    until(lambda: state_of(session.running.pid) == "T", "the supervisor stopped")
    session.send(signal.SIGCONT)
    until(lambda: state_of(program) in {"S", "R"}, "the program continued")
    session.send(signal.SIGTERM)
    session.wait()
    assert session.members() == []


def test_a_tstp_before_there_is_a_program_stops_it_as_soon_as_there_is_one(tmp_path: Path) -> None:
    mark, go = tmp_path / "pid", tmp_path / "go"
    wrapper = ("sh", "-c", f'while ! [ -e {go} ]; do sleep 0.01; done; "$@"; exit', "sh")
    script = f"echo $$ > {mark}; while :; do sleep 0.05; done"
    session = Supervised(tmp_path / "state", ["bash", "-c", script], wrapper=wrapper, capabilities=BWRAP)
    session.start(process_group=0)
    session.event("guest.started")
    session.send(signal.SIGTSTP)
    go.touch()
    program = int(session.wait_for(mark))
    until(lambda: state_of(program) in {"T", "t"}, "the program stopped")
    until(lambda: state_of(session.running.pid) == "T", "the supervisor stopped")
    session.send(signal.SIGCONT)
    session.send(signal.SIGTERM)
    session.wait()
    assert session.members() == []


def test_a_hup_that_nohup_ignored_stays_ignored_by_all(tmp_path: Path) -> None:
    script = f"grep SigIgn /proc/self/status > {tmp_path}/ignored; sleep 600"
    session = Supervised(tmp_path / "state", ["sh", "-c", script])
    session.argv = ["nohup", *session.argv]
    session.start(stderr=subprocess.DEVNULL)
    assert session.wait_for(tmp_path / "ignored").split() == ["SigIgn:", "0000000000000001"]
    session.send(signal.SIGHUP)
    session.send(signal.SIGTERM)
    assert session.wait() == 143
    assert "SIGHUP" not in [event.get("signal") for event in session.events()]


def test_a_signal_during_the_linger_time_ends_it(tmp_path: Path) -> None:
    deaf = f"trap '' TERM; echo up > {tmp_path}/up; while :; do sleep 600; done"
    script = f'setsid sh -c "{deaf}" & while ! [ -s {tmp_path}/up ]; do sleep 0.01; done; exit 4'
    session = Supervised(tmp_path / "state", ["sh", "-c", script], linger=600).start()
    session.event("guest.exited")
    session.send(signal.SIGINT)
    assert session.wait() == 4
    assert session.members() == []


def test_a_signal_that_comes_before_the_wrapper_has_started_the_program_waits_for_it(tmp_path: Path) -> None:
    # A wrapper that takes its time, as a busy machine makes it.
    wrapper = [
        "sh",
        "-c",
        f'echo up > {tmp_path}/slow; while ! [ -s {tmp_path}/go ]; do :; done; "$@" & wait $!',
        "slow",
    ]
    session = Supervised(
        tmp_path / "state", ["sleep", "600"], wrapper=wrapper, capabilities={**BWRAP, "backend": "slow"}
    ).start()
    session.wait_for(tmp_path / "slow")
    session.send(signal.SIGTERM)
    session.event("session.stopping")
    (tmp_path / "go").write_text("go")
    assert session.wait() == 143
