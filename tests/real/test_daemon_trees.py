# SPDX-License-Identifier: GPL-3.0-or-later
"""Awkward trees, crashes and full disks under the daemon: each session ends once, and nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from daemons import Daemon
from supervised import carriers, running, state_of, until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.real


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with Daemon(tmp_path) as one:
        yield one


# Each is a shell script; all of them are still there when the stop comes.
TREES = {
    "ignores TERM, and so do its children": "trap '' TERM; (while :; do sleep 0.1; done) & while :; do sleep 0.1; done",
    "leaves its session behind by forking twice": "(setsid sh -c 'sleep 1000 & exec sleep 1000' &); sleep 1000",
    "clears its environment": "env -i setsid sleep 1000 & env -i sleep 1000",
    "holds its output open": "setsid sleep 1000 & exec sleep 1000",
    "floods": "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done",
    "forks faster than it is swept": "f() { sleep 0.01 & f; }; trap '' TERM; while :; do (sleep 0.02 &); done",
    "is stopped": "sleep 1000 & kill -STOP $! $$; wait",
    "has three hundred children that end with it": (
        "i=0; while [ $i -lt 300 ]; do sleep 1000 & i=$((i+1)); done; trap 'kill 0; exit' TERM; wait"
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_is_ended_whole(daemon: Daemon, name: str) -> None:
    stranger = subprocess.Popen(["sleep", "1000"])
    try:
        session = daemon.start("sh", "-c", TREES[name])
        until(lambda: len(daemon.json("ps", session)["processes"]) >= (2 if "flood" not in name else 1), "it runs")
        before = {process["pid"] for process in daemon.json("ps", session)["processes"]}
        assert daemon.json("stop", session)["state"] == "stopped"
        assert [pid for pid in before if state_of(pid) not in {"", "Z"}] == []
        assert daemon.members(session) == []
        assert daemon.endings(session) == ["session.stopped"]
        assert stranger.poll() is None, "a process of nobody's was ended"
    finally:
        stranger.kill()
        stranger.wait()


STEPS = ["session.created", "guest.started", "session.ready", "session.stopping"]


@pytest.mark.parametrize("step", STEPS)
def test_a_supervisor_that_is_killed_at_any_step_is_cleaned_up_after(daemon: Daemon, step: str) -> None:
    script = "trap '' TERM; sleep 1077 & while :; do wait; done"
    with subprocess.Popen(
        daemon.argv("start", "run", "--grace", "600", "--", "sh", "-c", script), env=daemon.environ,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as starting:  # fmt: skip
        session = until(lambda: next((path.name for path in folders(daemon)), ""), "a folder")
        if step == "session.stopping":
            starting.wait(50)
            stopping = subprocess.Popen(
                daemon.argv("stop", session), env=daemon.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        until(lambda: step in [event["event"] for event in daemon.events(session)], step)
        os.kill(daemon.worker(session), signal.SIGKILL)
        if step == "session.stopping":
            stopping.wait(50)
    until(lambda: daemon.state_of(session) == "failed", "failed")
    assert running("sleep", "1077") == []
    assert daemon.endings(session) == ["session.failed"]
    assert (daemon.path(session) / ".complete").exists()


def folders(daemon: Daemon) -> list[Path]:
    sessions = daemon.state / "droiddeck-session" / "sessions"
    if not sessions.exists():
        return []
    return [path for path in sessions.iterdir() if path.is_dir() and (path / "events.jsonl").exists()]


def test_a_stop_that_comes_while_a_session_starts_is_honoured(daemon: Daemon) -> None:
    request = {"protocol": 1, "verb": "start", "kind": "run", "argv": ["sleep", "1088"], "environ": daemon.environ}
    for _ in range(6):
        with daemon.connect() as client:
            client.sendall(json.dumps(request).encode() + b"\n")
            until(lambda: live(daemon), "the daemon has it")
            asked = daemon.ask(b'{"protocol": 1, "verb": "stop"}\n')
            with client.makefile("rb") as lines:
                answer = json.loads(lines.readline())
        assert asked["ok"] is True
        assert answer["ok"] is True or answer["error"]["code"] in {"SESSION_ENDED", "GUEST_EXIT"}
        assert running("sleep", "1088") == []
        assert live(daemon) == []
    assert [daemon.endings(path.name) for path in folders(daemon)] == [["session.stopped"]] * len(folders(daemon))


def live(daemon: Daemon) -> list[dict[str, Any]]:
    answer = daemon.ask(b'{"protocol": 1, "verb": "status"}\n')
    return [one for one in answer["sessions"] if one["state"] not in {"stopped", "failed"}]


@pytest.mark.parametrize("backend", ["fastpath", "proot"])
def test_a_killed_tracer_fails_its_session_alone(tmp_path: Path, guest_data: Path, backend: str) -> None:
    with Daemon(tmp_path, guest_data, BACKEND_NAME=backend) as daemon:
        other = daemon.start("sleep", "1001")
        session = daemon.start("sh", "-c", "sleep 1002 & sleep 1002")
        until(lambda: len(running("sleep", "1002")) == 2, "both run")
        tracer = next(one for one in daemon.json("status", session)["sessions"])["guest_pid"]
        os.kill(tracer, signal.SIGKILL)
        until(lambda: daemon.state_of(session) == "failed", "failed")
        assert daemon.json("status", session)["sessions"][0]["failure"]["code"] == "TRACER_DIED"
        assert running("sleep", "1002") == []
        assert daemon.state_of(other) == "ready"


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_full_disk_costs_the_lines_not_the_session(tmp_path: Path) -> None:
    with small_disk(tmp_path / "state"), Daemon(tmp_path) as daemon:
        session = daemon.start("sh", "-c", "head -c 1000000 /dev/zero; exec sleep 1000")
        until(lambda: (daemon.path(session) / "output.log").stat().st_size > 100_000, "the disk is full")
        until(lambda: daemon.json("ps", session)["processes"][-1]["name"] == "sleep", "it went on")
        assert daemon.json("stop", session)["state"] == "stopped"
        assert daemon.members(session) == []
        refused = daemon.json_start("--", "true", status=None)
        assert refused["ok"] or refused["error"]["code"] in {"STATE_NOT_WRITABLE", "NOT_STAGED"}


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a read-only file system")
def test_a_state_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with small_disk(tmp_path / "state"):
        subprocess.run(["mount", "-o", "remount,ro", tmp_path / "state"], check=True)
        with Daemon(tmp_path) as daemon:
            answer = daemon.json_start("--", "true", status=6)
            assert answer["error"]["code"] == "STATE_NOT_WRITABLE"
            assert str(tmp_path / "state") in answer["error"]["message"]


def test_hooks_run_once_around_a_session_and_the_last_one_always(tmp_path: Path) -> None:
    trail = tmp_path / "trail"
    before, after = (f"sh -c 'echo {word} $SESSION_ID >> \"{trail}\"'" for word in ("before", "after"))
    with Daemon(tmp_path, SESSION_BEFORE=before, SESSION_AFTER=after) as daemon:
        well = daemon.start("sleep", "1000")
        daemon("stop", well)
        killed = daemon.start("sleep", "1000")
        daemon("kill", killed)
        expected = [f"{word} {session}" for session in (well, killed) for word in ("before", "after")]
        assert trail.read_text().splitlines() == expected
    with Daemon(tmp_path / "second", SESSION_BEFORE="false", SESSION_AFTER=after) as daemon:
        refused = daemon.json_start("--", "true", status=None)
        assert refused["ok"] is False
        assert len(trail.read_text().splitlines()) == 5


READY = {
    "file": ("SESSION_READY_FILE", 'echo > "$0"'),
    "socket": (
        "SESSION_READY_SOCKET",
        """python3 -c 'import socket, sys; one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
one.sendto(b"STATUS=x\\nREADY=1", sys.argv[1])' "$0\"""",
    ),
    "command": ("SESSION_READY_COMMAND", 'echo > "$0"'),
}


@pytest.mark.parametrize("hook", READY)
def test_a_session_is_ready_when_its_hook_says_so(tmp_path: Path, hook: str) -> None:
    setting, say = READY[hook]
    mark, gate = str(tmp_path / "mark"), tmp_path / "gate"
    value = f"test -e {mark}" if hook == "command" else mark
    with Daemon(tmp_path, None, **{setting: value}) as daemon:
        script = f"while [ ! -e '{gate}' ]; do sleep 0.01; done; {say}; exec sleep 1000"
        session = daemon.start("sh", "-c", script, mark, wait=False)
        assert daemon.state_of(session) == "starting"
        assert daemon.json("wait", "ready", session, "--timeout", "0.1", status=5)["error"]["code"] == "TIMEOUT"
        gate.touch()
        assert daemon.json("wait", "ready", session)["state"] == "ready"


def test_a_session_that_is_not_ready_in_time_has_failed(tmp_path: Path) -> None:
    with Daemon(tmp_path, SESSION_READY_FILE=str(tmp_path / "never"), SESSION_READY_LIMIT="0.2") as daemon:
        session = daemon.start("sleep", "1000", wait=False)
        waited = daemon("wait", "ready", session, status=4)
        assert b"NOT_READY" in waited.stderr
        assert daemon.members(session) == []
        assert daemon.endings(session) == ["session.failed"]


def test_a_session_may_last_as_long_as_its_last_process(tmp_path: Path) -> None:
    with Daemon(tmp_path, SESSION_WAIT_FOR="tree") as daemon:
        gate = tmp_path / "gate"
        script = f"(setsid sh -c 'while [ ! -e \"{gate}\" ]; do sleep 0.01; done' &); exit 5"
        session = daemon.start("sh", "-c", script, wait=False)
        until(lambda: "guest.exited" in [event["event"] for event in daemon.events(session)], "the first has ended")
        # Longer than the linger time: what is left gets no signal.
        assert daemon.json("wait", "failed", session, "--timeout", "0.5", status=5)["error"]["code"] == "TIMEOUT"
        gate.touch()
        assert daemon.json("wait", "failed", session)["status"] == 5
        second = daemon.start("sh", "-c", "(setsid sleep 1000 &); exit 0", wait=False)
        until(lambda: "guest.exited" in [event["event"] for event in daemon.events(second)], "the first has ended")
        assert daemon.json("stop", second)["state"] == "stopped"
        assert daemon.members(second) == []


def rounds(daemon: Daemon, number: int) -> None:
    """Start and stop a tree that ignores TERM, and see that nothing is left each time."""
    for _ in range(number):
        session = daemon.start("sh", "-c", "trap '' TERM; setsid sleep 1000 & while :; do wait; done", wait=False)
        token = daemon.token(session)
        assert daemon.json("stop", session)["state"] == "stopped"
        assert carriers(f"DROIDDECK_SESSION={token}") == []


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("number", [20, pytest.param(200, marks=pytest.mark.long)])
@pytest.mark.timeout(600)
def test_round_after_round_leaves_nothing_and_grows_nothing(daemon: Daemon, number: int) -> None:
    rounds(daemon, 3)
    spawner = daemon.json("status")["daemon"]["spawner"]
    descriptors, memory = daemon.descriptors(), resident(daemon.process.pid)
    forker = len(list(Path(f"/proc/{spawner}/fd").iterdir()))
    rounds(daemon, number)
    assert daemon.descriptors() == descriptors
    assert len(list(Path(f"/proc/{spawner}/fd").iterdir())) == forker
    # The list of ended sessions fills up to its length, and allocators keep some.
    assert resident(daemon.process.pid) - memory < 4 << 20
