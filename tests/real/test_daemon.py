# SPDX-License-Identifier: GPL-3.0-or-later
"""The daemon with real processes: what its verbs do, several sessions at once, and what is left of each: nothing."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from daemons import Daemon
from supervised import carriers, running, state_of, until
from terminals import TerminalProgram

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.real


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with Daemon(tmp_path) as one:
        yield one


def test_a_session_starts_is_seen_and_stops(daemon: Daemon) -> None:
    session = daemon.start("sh", "-c", "echo said; sleep 1000 & wait")
    assert daemon.state_of(session) == "ready"
    assert {process["name"] for process in daemon.json("ps")["processes"]} >= {"sh", "sleep"}
    assert until(lambda: daemon("logs", session).stdout, "printed") == b"said\n"
    answer = daemon.json("stop")
    assert (answer["session"], answer["state"]) == (session, "stopped")
    assert daemon.members(session) == []
    assert daemon.endings(session) == ["session.stopped"]
    assert (daemon.path(session) / ".complete").exists()


def test_a_program_that_ends_ends_its_session(daemon: Daemon) -> None:
    failed = daemon.start("sh", "-c", "exit 7", wait=False)
    until(lambda: daemon.state_of(failed) == "failed", "failed")
    told = daemon.json("status", failed)["sessions"][0]
    assert (told["status"], told["failure"]["code"]) == (7, "GUEST_EXIT")
    well = daemon.start("true", wait=False)
    until(lambda: daemon.state_of(well) == "stopped", "stopped")


def test_what_cannot_start_is_the_answer_to_the_start(daemon: Daemon) -> None:
    answer = daemon.json_start("--backend", "no such", "--", "true", status=None)
    assert answer["ok"] is False
    foreground = daemon("plan", "run", "--json", "--backend", "no such", "--", "true", status=None)
    assert answer["error"] == json.loads(foreground.stdout)["error"]


def test_several_sessions_run_and_one_ends_alone(daemon: Daemon) -> None:
    one, two, three = (daemon.start("sleep", number) for number in ("1001", "1002", "1003"))
    assert daemon("stop", status=4).stderr.count(b"SEVERAL_SESSIONS") == 1
    daemon("kill", two)
    assert [daemon.state_of(session) for session in (one, two, three)] == ["ready", "stopped", "ready"]
    assert [len(running("sleep", number)) for number in ("1001", "1002", "1003")] == [1, 0, 1]


def test_stop_is_idempotent_and_all_who_ask_get_the_same_answer(daemon: Daemon) -> None:
    session = daemon.start("sh", "-c", "trap '' TERM; sleep 1000 & while :; do wait; done")
    asking = [
        subprocess.Popen(daemon.argv("stop", session, "--json"), env=daemon.environ, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    answers = [json.loads(one.communicate(timeout=50)[0]) for one in asking]
    # Who comes when all is over is told so.
    assert {answer.get("state") for answer in answers if answer["ok"]} == {"stopped"}
    assert daemon.endings(session) == ["session.stopped"]
    assert len([event for event in daemon.events(session) if event["event"] == "session.stopping"]) == 1
    assert daemon("stop", session, status=4).stderr.count(b"NO_ACTIVE_SESSION") == 1


@pytest.fixture(params=["freezer", "signals"])
def suspending(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that has the kernel's freezer, where this machine lets us, and one that has not."""
    daemon = Daemon(tmp_path)
    if request.param == "signals" and os.geteuid() == 0:
        hide = 'umount --all --types cgroup2; exec "$@"'
        daemon.prefix = ["unshare", "--mount", "sh", "-c", hide, "sh"]
    with daemon:
        yield daemon


def at_rest(daemon: Daemon) -> bool:
    """Whether all processes of the one session are stopped or frozen."""
    pids = [process["pid"] for process in daemon.json("ps")["processes"]]
    groups = [Path(f"/proc/{pid}/cgroup").read_text() for pid in pids]
    frozen = ["/droiddeck-frozen-" in group for group in groups]
    return bool(pids) and all(ice or state_of(pid) in {"T", "t"} for pid, ice in zip(pids, frozen, strict=True))


def test_a_suspended_session_stands_still_and_goes_on(suspending: Daemon, tmp_path: Path) -> None:
    daemon, beat = suspending, tmp_path / "beat"
    session = daemon.start("sh", "-c", f"while :; do echo x >> '{beat}'; sleep 0.01; done")
    until(beat.exists, "it beats")
    groups = {process["pid"]: group(process["pid"]) for process in daemon.json("ps")["processes"][:1]}
    for _ in range(2):
        assert daemon.json("suspend")["state"] == "suspended"
        assert at_rest(daemon)
        still = beat.stat().st_size
        assert daemon.json("suspend")["state"] == "suspended"
        assert beat.stat().st_size == still
        assert daemon.json("resume")["state"] == "ready"
        until(functools.partial(longer, beat, still), "it beats again")
    assert {pid: group(pid) for pid in groups} == groups
    assert daemon("resume", session, status=4).stderr.count(b"SESSION_NOT_SUSPENDED") == 1
    means = {event["by"] for event in daemon.events(session) if event["event"] == "session.suspended"}
    assert means == {"signals"} or not daemon.prefix


def longer(path: Path, size: int) -> bool:
    return path.stat().st_size > size


def group(pid: int) -> str:
    return Path(f"/proc/{pid}/cgroup").read_text()


def test_a_suspended_session_acts_on_the_request_to_end(suspending: Daemon, tmp_path: Path) -> None:
    mark = tmp_path / "ended well"
    session = suspending.start("sh", "-c", f"trap 'echo > \"{mark}\"; exit 0' TERM; while :; do sleep 0.01; done")
    suspending("suspend")
    assert suspending.json("stop", session)["status"] == 0
    assert mark.exists()


def test_a_tree_that_forks_while_it_is_frozen_is_frozen_whole_or_runs_on(suspending: Daemon) -> None:
    daemon = suspending
    forker = "while :; do (sleep 0.005 & sleep 0.005 & wait) & sleep 0.002; wait; done"
    session = daemon.start("sh", "-c", forker)
    done = daemon("suspend", "--json", status=None)
    if done.returncode == 0:
        assert at_rest(daemon)
    else:
        assert json.loads(done.stdout)["error"]["code"] == "NOT_SUSPENDED"
        assert daemon.state_of(session) == "ready"
    daemon("stop", session)
    assert daemon.members(session) == []


def test_a_suspended_session_whose_supervisor_is_killed_is_ended(suspending: Daemon) -> None:
    session = suspending.start("sh", "-c", "sleep 1000 & wait")
    suspending("suspend")
    os.kill(suspending.worker(session), signal.SIGKILL)
    until(lambda: suspending.state_of(session) == "failed", "failed")
    assert suspending.members(session) == []


def test_a_daemon_that_is_asked_to_end_ends_its_sessions_first(daemon: Daemon) -> None:
    sessions = [daemon.start("sleep", "1000") for _ in range(3)]
    daemon.process.terminate()
    assert daemon.process.wait(50) == 0
    assert [daemon.endings(session) for session in sessions] == [["session.stopped"]] * 3
    assert not daemon.control.exists()


def test_a_killed_daemon_takes_its_sessions_with_it(daemon: Daemon) -> None:
    session = daemon.start("sh", "-c", "trap '' TERM; sleep 1000 & while :; do wait; done")
    worker = daemon.worker(session)
    daemon.kill()
    until(lambda: state_of(worker) in {"", "Z"}, "the worker has ended")
    assert daemon.members(session) == []
    assert daemon.endings(session) == ["session.stopped"]
    daemon.begin()
    assert daemon.json("status")["sessions"] == []


def test_what_a_killed_supervisor_leaves_is_ended_by_the_daemon(daemon: Daemon) -> None:
    session = daemon.start("sh", "-c", "trap '' TERM; setsid sleep 1000 & while :; do wait; done")
    until(lambda: len(daemon.members(session)) == 2, "both run")
    os.kill(daemon.worker(session), signal.SIGKILL)
    until(lambda: daemon.state_of(session) == "failed", "failed")
    assert daemon.json("status", session)["sessions"][0]["failure"]["code"] == "SUPERVISOR_DIED"
    assert daemon.members(session) == []
    assert daemon.endings(session) == ["session.failed"]
    assert (daemon.path(session) / ".complete").exists()


def test_the_next_start_ends_what_a_killed_daemon_and_supervisor_leave(daemon: Daemon) -> None:
    session = daemon.start("sleep", "1000")
    worker = daemon.worker(session)
    os.kill(worker, signal.SIGSTOP)
    daemon.kill()
    os.kill(worker, signal.SIGKILL)
    until(lambda: state_of(worker) in {"", "Z"}, "the worker is gone")
    assert len(daemon.members(session)) == 1
    daemon.begin()
    daemon.start("true", wait=False)
    until(lambda: daemon.endings(session) == ["session.failed"], "recovered")
    assert daemon.members(session) == []


def test_two_daemons_do_not_share_a_socket(daemon: Daemon) -> None:
    second = daemon("daemon", status=3)
    assert b"DAEMON_RUNS" in second.stderr
    assert daemon.reachable()


def test_without_a_daemon_a_verb_says_so(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    assert b"droiddeck-session daemon" in daemon("status", status=3).stderr


def test_a_path_longer_than_a_socket_address_does(tmp_path: Path) -> None:
    folder = tmp_path / ("a folder with a long name " * 4).strip() / ("and another one in it " * 4).strip()
    folder.mkdir(parents=True)
    daemon = Daemon(folder)
    with daemon.log.open("ab") as log:
        daemon.process = subprocess.Popen(daemon.argv("daemon"), env=daemon.environ, stderr=log)
    until(daemon.control.exists, "it listens")
    assert len(os.fsencode(daemon.control)) > 107
    try:
        assert daemon.json("stop", daemon.start("sleep", "1000"))["state"] == "stopped"
    finally:
        daemon.__exit__()


def test_events_are_followed_to_the_end_each_once(daemon: Daemon) -> None:
    session = daemon.start("sleep", "1000")
    with subprocess.Popen(
        daemon.argv("events", "--follow", session), env=daemon.environ, stdout=subprocess.PIPE
    ) as follower:
        assert follower.stdout
        first = json.loads(follower.stdout.readline())
        daemon("stop")
        rest = [json.loads(line) for line in follower.stdout]
    assert follower.returncode == 0
    assert [first, *rest] == daemon.events(session)
    times = [event["t"] for event in [first, *rest]]
    assert times == sorted(times)


def test_a_program_beside_the_main_one_has_its_own_status_and_descriptors(daemon: Daemon) -> None:
    daemon.start("sleep", "1000")
    done = daemon("guest-exec", "--", "sh", "-c", "cat; echo err >&2; exit 9", input=b"through\n", status=9)
    assert (done.stdout, done.stderr) == (b"through\n", b"err\n")
    assert daemon("guest-exec", "--", "no such program", status=127).stdout == b""
    # Every ending of a program beside the main one is no ending of the session.
    assert daemon.json("status")["sessions"][0]["state"] == "ready"


def test_a_command_longer_than_a_socket_takes_at_once_arrives_whole(daemon: Daemon) -> None:
    daemon.start("sleep", "1000")
    words = ["x" * 100_000] * 12
    script = "echo $# ${#1} ${#12}; cat"
    done = daemon("guest-exec", "--", "sh", "-c", script, "sh", *words, input=b"through\n")
    assert done.stdout == b"12 100000 100000\nthrough\n"
    assert daemon("guest-exec", "--", "echo", "next").stdout == b"next\n"


def test_top_shows_processes_live_on_a_terminal_and_once_elsewhere(daemon: Daemon) -> None:
    session = daemon.start("sh", "-c", "sleep 1001 & wait")
    once = daemon("top", "--interval", "0.1").stdout.decode()
    assert once.count(f"{session}: ready, ") == 1
    assert {line.split()[-2] for line in once.splitlines() if " S " in line} >= {"sh", "sleep"}
    with TerminalProgram(daemon.argv("top", "--interval", "0.1"), {**daemon.environ, "TERM": "xterm"}) as terminal:
        terminal.expect(f"{session}: ready, ")
        terminal.expect(f"{session}: ready, ")
        daemon("stop")
        terminal.expect(f"{session}: stopped, 0 processes")


@pytest.mark.parametrize("verb", ["status", "ps", "stats", "events", "logs", "top"])
def test_what_a_verb_tells_may_be_closed_or_full(daemon: Daemon, verb: str) -> None:
    daemon.start("sh", "-c", "echo said; sleep 1000")
    for redirection, status in ((">&-", 0), ("2>&-", 0), (">/dev/full", 6)):
        words = ["bash", "-c", f'exec "$@" {redirection}', "bash", *daemon.argv(verb)]
        done = subprocess.run(words, env=daemon.environ, capture_output=True, timeout=50, check=False)
        assert (done.returncode, b"Traceback" in done.stderr) == (status, False), (redirection, done.stderr)


def test_a_desktop_is_there_once_or_kept(tmp_path: Path, guest_data: Path) -> None:
    with Daemon(tmp_path, guest_data, BACKEND_NAME="bwrap") as daemon:
        first = daemon.json("start", "desktop", "--wait", "--env", "DROIDDECK_STAND_IN_DESKTOP=stay")
        again = daemon.json("start", "desktop", status=4)
        assert again["error"]["code"] == "SESSION_ACTIVE"
        kept = daemon.json("start", "desktop", "--reuse")
        assert (kept["session"], kept["reused"]) == (first["session"], True)
        beside = daemon("guest-exec", "--", "cat", "/etc/os-release")
        assert b"Debian" in beside.stdout
        daemon("stop")
        assert daemon.json("start", "desktop", "--reuse")["reused"] is False


def test_the_steam_client_is_asked_first_and_starts_and_ends_games(tmp_path: Path, guest_data: Path) -> None:
    with Daemon(tmp_path, guest_data, BACKEND_NAME="bwrap", SESSION_GRACE="600") as daemon:
        steam = daemon.json(
            "start",
            "steam",
            "--wait",
            "--env",
            "DROIDDECK_STAND_IN_STEAM=stay status=0",
            "--env",
            "DROIDDECK_STAND_IN_GAME=stay",
        )["session"]
        assert daemon.json("quit", "730", status=4)["error"]["code"] == "NO_SUCH_GAME"
        assert daemon.json("launch", "x", status=2)["error"]["code"] == "INVALID_APP_ID"
        daemon("suspend")
        assert daemon.json("launch", "730")["state"] == "ready"
        until(lambda: games(daemon, "730"), "the game runs")
        assert daemon.json("quit", "730")["processes"] >= 1
        assert games(daemon, "730") == []
        # Nothing but its own end ends the client within the grace time.
        stopped = daemon.json("stop", steam)
        assert (stopped["state"], stopped["status"]) == ("stopped", 0)
        names = [event["event"] for event in daemon.events(steam)]
        assert "steam.shutdown_requested" in names
        assert "signal.forwarded" not in names


def test_a_client_that_does_not_heed_is_ended_like_others(tmp_path: Path, guest_data: Path) -> None:
    with Daemon(tmp_path, guest_data, BACKEND_NAME="bwrap", SESSION_CLIENT_LIMIT="0.2") as daemon:
        script = "DROIDDECK_STAND_IN_STEAM=stay ignore=shutdown,TERM"
        session = daemon.json("start", "steam", "--wait", "--env", script)["session"]
        assert daemon.json("stop")["state"] == "stopped"
        assert daemon.members(session) == []
        other = daemon.start("sleep", "1000")
        assert daemon.json("launch", "730", other, status=4)["error"]["code"] == "NO_STEAM_SESSION"


def test_top_shows_who_is_busy_and_ends_with_the_session(daemon: Daemon) -> None:
    session = daemon.start("sh", "-c", "sleep 1000 & while :; do :; done")
    shown = daemon("top", "--interval", "0.2", "--rounds", "2").stdout.decode()
    assert session in shown
    # The busiest is in the first row.
    assert shown.rindex(" sh ") < shown.rindex(" sleep ")
    with subprocess.Popen(daemon.argv("top", session), env=daemon.environ, stdout=subprocess.DEVNULL) as watching:
        daemon("stop")
        assert watching.wait(50) == 0


def games(daemon: Daemon, app: str) -> list[int]:
    pids = [process["pid"] for process in daemon.json("ps")["processes"]]
    return [pid for pid in pids if pid in carriers(f"SteamAppId={app}")]


def test_output_beyond_the_limit_is_dropped_and_the_program_goes_on(tmp_path: Path) -> None:
    with Daemon(tmp_path, SESSION_OUTPUT_LIMIT="1") as daemon:
        flood = 'head -c 50000000 /dev/zero; echo done > "$0"'
        session = daemon.start("sh", "-c", flood, str(tmp_path / "done"), wait=False)
        until(lambda: daemon.state_of(session) == "stopped", "ended")
        assert (tmp_path / "done").exists()
        assert (daemon.path(session) / "output.log").stat().st_size == 1 << 20
