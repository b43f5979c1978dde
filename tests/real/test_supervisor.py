# SPDX-License-Identifier: GPL-3.0-or-later
"""The supervisor with real processes: statuses, leftovers, and what a careless parent passes on."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from supervised import (
    BACKENDS,
    BWRAP_COMMAND,
    PROOT_COMMAND,
    Supervised,
    carriers,
    environment,
    kernel_tells_endings,
    state_of,
    status_beside_leftovers,
    until,
)

pytestmark = pytest.mark.real


ENDINGS: list[Any] = [
    (["true"], 0),
    (["sh", "-c", "exit 3"], 3),
    (["/etc/passwd"], 126),
    (["/nonexistent/program"], 127),
    (["sh", "-c", "exit 143"], 143),
]


@pytest.mark.parametrize("expected", ENDINGS, ids=lambda expected: " ".join(expected[0]))
@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_the_status_is_the_main_programs(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any], expected: tuple[list[str], int]
) -> None:
    argv, status = expected
    session = Supervised(tmp_path / "state", argv, wrapper=wrapper, capabilities=capabilities)
    assert session.run(stderr=subprocess.DEVNULL) == status
    assert (session.ending()["status"], session.ending()["signal"]) == (status, None)
    assert session.event("guest.exited")["status"] == status
    last = session.events()[-1]
    assert last["event"] == ("session.failed" if status else "session.stopped")
    assert last["main_status_known"] == session.ending()["main_status_known"]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL, signal.SIGABRT])
@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_a_signal_is_no_exit(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any], signum: signal.Signals
) -> None:
    session = Supervised(
        tmp_path / "state", ["sh", "-c", f"read go; kill -{int(signum)} $$"], wrapper=wrapper, capabilities=capabilities
    ).start(stdin=subprocess.PIPE)
    session.event("guest.main_program" if wrapper else "guest.started")
    session.running.communicate(b"go\n", timeout=30)
    exited, last = session.event("guest.exited"), session.events()[-1]
    assert last["event"] == "session.failed"
    if kernel_tells_endings() or not wrapper:
        assert (session.running.returncode, session.ending()["signal"]) == (128 + signum, signum)
        assert (exited["signal"], last["signal"], last["main_status_known"]) == (signum.name, signum.name, True)
    else:
        # bwrap makes 128+n of it, stock proot 255: a status like any other.
        assert session.running.returncode == (255 if wrapper == PROOT_COMMAND else 128 + signum)
        assert (session.ending()["signal"], exited["signal"], last["main_status_known"]) == (None, None, False)


@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_what_the_main_program_leaves_does_not_delay_its_status(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any]
) -> None:
    script = "setsid sleep 600 & (sleep 600; exit 7) & exit 3"
    session = Supervised(tmp_path / "state", ["sh", "-c", script], wrapper=wrapper, capabilities=capabilities)
    started = time.monotonic()
    # The leftovers hold both pipes open; nobody waits for them.
    session.start(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    session.running.communicate(timeout=30)
    assert session.running.returncode == status_beside_leftovers(3, wrapper)
    assert time.monotonic() - started < 20
    assert session.members() == []


@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_a_leftover_that_ignores_term_is_killed_after_the_linger_time(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any]
) -> None:
    deaf = f"trap '' TERM; echo up > {tmp_path}/deaf; while :; do sleep 600; done"
    script = f'setsid sh -c "{deaf}" & while ! [ -s {tmp_path}/deaf ]; do sleep 0.01; done'
    session = Supervised(
        tmp_path / "state", ["sh", "-c", script], wrapper=wrapper, capabilities=capabilities, linger=0.2
    )
    assert session.run() == status_beside_leftovers(0, wrapper)
    assert session.members() == []


def test_a_stopped_leftover_is_ended_too(tmp_path: Path) -> None:
    script = "sleep 600 & kill -STOP $!; exit 5"
    session = Supervised(tmp_path / "state", ["sh", "-c", script], linger=30)
    assert session.run() == 5
    assert session.members() == []


def test_a_branch_whose_middle_process_ended_is_still_found(tmp_path: Path) -> None:
    mark = tmp_path / "up"
    script = f'(sh -c "setsid env -i sleep 600 & echo \\$! > {mark}; exec true") & sleep 600'
    session = Supervised(tmp_path / "state", ["sh", "-c", script], grace=0.2).start()
    orphan = int(until(lambda: mark.read_text().strip() if mark.exists() else "", "the orphan's pid"))
    session.send(signal.SIGTERM)
    session.wait()
    # It carries no token any more; descent alone finds it.
    assert state_of(orphan) in {"", "Z"}


def test_stop_after_the_main_programs_parent_is_gone_leaves_nothing(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", ["bash", "-c", "setsid sleep 600 & disown; exec true"])
    assert session.run() == 0
    assert session.members() == []


def test_three_hundred_children_that_end_during_the_stop_do_not_disturb_it(tmp_path: Path) -> None:
    many_children_and_a_stop(tmp_path)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("_round", range(20))
def test_the_stop_holds_every_time(tmp_path: Path, _round: int) -> None:
    many_children_and_a_stop(tmp_path)


def many_children_and_a_stop(tmp_path: Path) -> None:
    mark = tmp_path / "up"
    program = (
        "import os, random, time\n"
        "for _ in range(300):\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(random.random()); os._exit(0)\n"
        f"open({str(mark)!r}, 'w').write('up')\n"
        "time.sleep(600)\n"
    )
    session = Supervised(tmp_path / "state", [sys.executable, "-c", program]).start()
    session.wait_for(mark)
    session.send(signal.SIGTERM)
    assert session.wait() == 143
    assert session.members() == []
    assert session.event("session.stopped")["status"] == 143


def names_of(pids: list[int]) -> list[str]:
    return sorted(Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() for pid in pids)


def test_two_sessions_do_not_meet(tmp_path: Path) -> None:
    one, two = (Supervised(tmp_path / name, ["sh", "-c", "sleep 600 & sleep 600"]).start() for name in ("one", "two"))
    names = ["sh", "sleep", "sleep"]  # in the midst of an exec a process shows no environment, and is no member
    for session in (one, two):
        until(lambda session=session: names_of(session.members()) == names, "the session's three processes")  # type: ignore[misc]
    before = two.members()
    one.send(signal.SIGTERM)
    assert one.wait() == 143
    assert one.members() == []
    assert two.members() == before
    two.send(signal.SIGTERM)
    assert two.wait() == 143


def test_sessions_that_start_at_once_have_folders_of_their_own(tmp_path: Path) -> None:
    sessions = [Supervised(tmp_path / "state", ["true"]).start() for _ in range(4)]
    assert [session.wait() for session in sessions] == [0] * 4
    folders = list((tmp_path / "state/droiddeck-session/sessions").glob("2*"))
    assert len({folder.name[:13] for folder in folders}) == 4


def test_a_parent_that_ignored_sigchld_and_blocked_signals_does_no_harm(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", ["sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status"])

    def careless() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR2, signal.SIGCHLD})

    session.start(stdout=subprocess.PIPE, preexec_fn=careless)
    shown, _ = session.running.communicate(timeout=30)
    assert session.running.returncode == 0
    assert shown.split() == [b"SigBlk:", b"0000000000000000", b"SigIgn:", b"0000000000000000"]


def test_a_parent_that_blocked_term_does_not_keep_it_from_us(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", ["sleep", "600"])
    session.start(preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM}))
    session.event("guest.started")
    session.send(signal.SIGTERM)
    assert session.wait() == 143


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_closed_descriptors_stay_closed_in_the_program(tmp_path: Path, closed: tuple[int, ...]) -> None:
    session = Supervised(tmp_path / "state", ["sleep", "600"])

    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    session.start(preexec_fn=close)
    until(lambda: descriptors(session) == {0, 1, 2} - set(closed), "the program's descriptors are the caller's")
    session.send(signal.SIGTERM)
    assert session.wait() == 143
    assert session.event("session.stopped")["status"] == 143


def test_the_program_gets_no_descriptor_of_ours(tmp_path: Path) -> None:
    leaked = os.open("/dev/null", os.O_RDONLY)
    session = Supervised(tmp_path / "state", ["sleep", "600"]).start(pass_fds=[leaked])
    os.close(leaked)
    until(lambda: descriptors(session) == {0, 1, 2}, "the program's descriptors are the caller's")
    session.send(signal.SIGTERM)
    session.wait()


def descriptors(session: Supervised) -> set[int]:
    """Return the program's descriptors; its dynamic loader opens and closes some at first."""
    program = Path(f"/proc/{session.event('guest.started')['pid']}")
    return {int(entry.name) for entry in (program / "fd").iterdir()}


def test_without_a_controlling_terminal_the_program_fails_as_it_would_natively(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", ["sh", "-c", "cat < /dev/tty"])
    session.start(start_new_session=True, stderr=subprocess.PIPE)
    _, told = session.running.communicate(timeout=30)
    assert session.running.returncode == 2
    assert b"No such device or address" in told


def test_few_descriptors_are_enough(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", ["sh", "-c", "ulimit -n; setsid sleep 600 & exit 6"])
    session.start(stdout=subprocess.PIPE, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24)))
    shown, _ = session.running.communicate(timeout=30)
    assert session.running.returncode == 6
    assert shown == b"24\n"
    assert session.members() == []


def test_a_subreaper_above_us_gets_nothing_of_ours(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", ["sh", "-c", "setsid setsid sleep 600 & exit 8"])
    above = (
        "import ctypes, os, subprocess, sys\n"
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
        "status = subprocess.call(sys.argv[1:])\n"
        "children = open(f'/proc/self/task/{os.getpid()}/children').read().split()\n"
        "sys.exit(99 if children else status)\n"
    )
    done = subprocess.run([sys.executable, "-c", above, *session.argv], env=environment(), timeout=30, check=False)
    assert done.returncode == 8


def test_a_program_that_cannot_be_started_is_our_failure_and_recorded(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", ["true"], wrapper=["/nonexistent/tracer"])
    session.start(stderr=subprocess.PIPE)
    _, told = session.running.communicate(timeout=30)
    assert b"cannot start '/nonexistent/tracer': No such file or directory" in told
    assert [event["event"] for event in session.events()] == ["session.created", "guest.start_failed", "session.failed"]
    assert session.events()[-1]["code"] == "PROGRAM_NOT_STARTED"
    assert (session.folder / ".complete").exists()


@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_a_kill_that_is_not_ours_is_told_as_such(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any]
) -> None:
    mark = tmp_path / "pid"
    script = f"echo $$ > {mark}; exec sleep 600"
    session = Supervised(tmp_path / "state", ["sh", "-c", script], wrapper=wrapper, capabilities=capabilities).start()
    session.event("guest.main_program" if wrapper else "guest.started")
    os.kill(int(session.wait_for(mark)), signal.SIGKILL)
    known = kernel_tells_endings() or not wrapper
    assert session.wait() == (137 if known or wrapper == BWRAP_COMMAND else 255)
    assert ("killed by SIGKILL, which we did not send" in session.event("session.failed")["reason"]) is known


def test_a_member_that_left_our_descent_is_found_by_its_token(tmp_path: Path) -> None:
    mark = tmp_path / "go"
    session = Supervised(tmp_path / "state", ["sleep", "600"]).start()
    session.event("guest.started")
    # As a program that an outside daemon starts with the session's environment.
    outsider = subprocess.Popen(["sleep", "600"], env={"DROIDDECK_SESSION": session.token, "PATH": os.environ["PATH"]})
    until(lambda: outsider.pid in carriers(f"DROIDDECK_SESSION={session.token}"), "the outsider's environment")
    session.send(signal.SIGTERM)
    assert session.wait() == 143
    assert outsider.wait(30) in {-signal.SIGTERM, -signal.SIGKILL}
    assert not mark.exists()
