# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes under the tracer: how they end, stop and go on, and what signals to the tracer do."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from backend_trials import open_folder
from traced import ENVIRON, TIME_LIMIT, SmallGuest, answers, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def started(guest: SmallGuest, script: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A shell script under the tracer, which says "ready" when it is; killed at the end."""
    with subprocess.Popen(
        guest.command("/bin/sh", "-c", script, options=options), stdout=subprocess.PIPE, env=ENVIRON, process_group=0
    ) as running:  # fmt: skip
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == b"ready\n"
            yield running
        finally:
            running.kill()


def descendants(pid: int) -> list[int]:
    """Return the processes below one, by what /proc says."""
    found: list[int] = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def gone(pids: list[int]) -> bool:
    return all(state(pid) in ("", "Z") for pid in pids)


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 137), ("kill -TERM $$", 143), ("kill -ABRT $$", 134),
        ("kill -SEGV $$", 139), ("(sleep 0.2; exit 7) & exit 3", 3), ("exec /not/there", 127),
    ],
)  # fmt: skip
def test_the_status_is_the_main_programs(guest: SmallGuest, script: str, status: int) -> None:
    assert guest.traced("/bin/sh", "-c", script).returncode == status


@pytest.mark.parametrize("options", [(), ("--kill-on-exit",)])
def test_without_kill_on_exit_the_rest_may_end_in_peace(guest: SmallGuest, options: tuple[str, ...]) -> None:
    done = guest.traced("/bin/sh", "-c", "(sleep 0.5; echo late >/spot/late) & exit 3", options=options)
    assert done.returncode == 3
    assert (guest.work / "late").exists() == (options == ())


def test_kill_on_exit_leaves_nothing_and_returns_at_once(guest: SmallGuest) -> None:
    script = "for n in 1 2 3; do setsid sh -c 'trap \"\" TERM HUP; sleep 600' & done; echo ready; read line"
    with subprocess.Popen(
        guest.command("/bin/sh", "-c", script, options=["--kill-on-exit"]),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRON,
    ) as running:  # fmt: skip
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        wait_for(lambda: len(descendants(running.pid)) >= 7, "three sleepers")
        pids = descendants(running.pid)
        running.stdin.close()
        assert running.wait(TIME_LIMIT) == 1
        assert gone(pids)


def test_the_tracers_death_takes_all_along(guest: SmallGuest) -> None:
    with started(guest, "setsid sleep 600 & sleep 600 & echo ready; wait") as running:
        wait_for(lambda: len(descendants(running.pid)) >= 3, "two sleepers")
        pids = descendants(running.pid)
        running.kill()
        running.wait(TIME_LIMIT)
        wait_for(lambda: gone(pids), "all dead")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_to_the_tracer_goes_to_the_main_program(guest: SmallGuest, number: signal.Signals) -> None:
    script = f'trap "echo got; exit 9" {number.name[3:]}; echo ready; while :; do sleep 0.05; done'
    with started(guest, script) as running:
        running.send_signal(number)
        assert running.wait(TIME_LIMIT) == 9
        assert running.stdout is not None
        assert running.stdout.read() == b"got\n"


def test_once_the_main_program_has_ended_term_ends_the_rest(guest: SmallGuest) -> None:
    script = "sh -c 'trap \"\" TERM; echo $$ >/spot/pid; echo ready; exec sleep 600' & exit 4"
    with started(guest, script) as running:
        wait_for(lambda: children(running.pid) == [], "the main program's end")
        pids = [int((guest.work / "pid").read_text())]
        running.terminate()
        assert running.wait(TIME_LIMIT) == 4
        assert gone(pids)


def pending(pid: int, number: int) -> bool:
    """Return whether a signal waits for its delivery to a process."""
    lines = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    return any(int(lines[name], 16) >> (number - 1) & 1 for name in ("SigPnd", "ShdPnd"))


def test_a_stopped_process_stands_still_and_goes_on(guest: SmallGuest) -> None:
    script = "echo ready; n=0; while :; do n=$((n + 1)); echo $n >/spot/counter; done"
    with started(guest, script) as running:
        main = children(running.pid)[0]
        counter = guest.work / "counter"
        wait_for(lambda: counter.exists() and counter.read_text() > "", "counting")
        os.kill(main, signal.SIGSTOP)
        # Each traced call stops for a moment too; from the delivery of SIGSTOP on nothing of the program runs.
        wait_for(lambda: not pending(main, signal.SIGSTOP) and state(main) in ("t", "T"), "stopped")
        stood = counter.read_text()
        for _ in range(20):
            assert counter.read_text() == stood
            time.sleep(0.01)
        os.kill(main, signal.SIGCONT)
        wait_for(lambda: counter.read_text() not in ("", stood), "counting again")
        os.kill(main, signal.SIGTERM)
        assert running.wait(TIME_LIMIT) == 128 + signal.SIGTERM


def test_waitpid_in_the_guest_sees_stop_continue_and_end(guest: SmallGuest) -> None:
    script = """
import os, signal
child = os.fork()
if child == 0:
    while True:
        os.stat("/spot")
seen = []
for number, option in ((signal.SIGSTOP, os.WUNTRACED), (signal.SIGCONT, os.WCONTINUED), (signal.SIGKILL, 0)):
    os.kill(child, number)
    status = os.waitpid(child, option)[1]
    seen.append((os.WIFSTOPPED(status), os.WIFCONTINUED(status), os.WIFSIGNALED(status)))
print(seen)
"""
    truth = answers(guest.truth("/usr/bin/python3", "-S", "-c", script))
    assert answers(guest.traced("/usr/bin/python3", "-S", "-c", script)) == truth
    assert truth[0] == 0


def test_a_child_of_a_threads_vfork_and_bursts_of_forks_all_end(guest: SmallGuest) -> None:
    script = """
import os, subprocess, threading
def burst():
    for n in range(15):
        assert subprocess.run(["/bin/sh", "-c", f"exit {n}"]).returncode == n
        child = os.fork()
        if child == 0:
            os._exit(n)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == n
threads = [threading.Thread(target=burst) for _ in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("all")
"""
    done = answers(guest.traced("/usr/bin/python3", "-S", "-c", script))
    assert done[:2] == (0, ["all"])


RUNNING = """
import errno, os, shutil, subprocess
shutil.copy("/bin/sleep", "/spot/program")
def tried(call, *words):
    try:
        result = call(*words)
        if isinstance(result, int):
            os.close(result)
        return "ok"
    except OSError as error:
        return errno.errorcode[error.errno]
def all_ways(path):
    flags = (os.O_WRONLY, os.O_RDWR, os.O_RDONLY, os.O_WRONLY | os.O_APPEND, os.O_RDONLY | os.O_PATH | os.O_TRUNC)
    return [tried(os.open, path, flag) for flag in flags]
os.symlink("program", "/spot/link")
# A word longer than the kernel takes: this exec fails inside the kernel, and the program runs nowhere.
print(tried(os.execv, "/spot/program", ["program", "w" * 200000]), all_ways("/spot/program"))
shutil.copy("/bin/sleep", "/spot/program")
running = subprocess.Popen(["/spot/program", "600"])
print(all_ways("/spot/program"), all_ways("/spot/link"), tried(os.truncate, "/spot/program", 5))
print([tried(os.open, "/spot/program", flags) for flags in (os.O_RDONLY | os.O_TRUNC, os.O_WRONLY | os.O_CREAT)])
child = os.fork()
if child == 0:
    os.setgid(1234); os.setuid(1234)
    print(all_ways("/spot/program"), flush=True)
    os._exit(0)
os.waitpid(child, 0)
os.rename("/spot/program", "/spot/other")
print(all_ways("/spot/other"))
running.kill(); running.wait()
print(all_ways("/spot/other"))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, who may not write")
def test_a_program_that_runs_is_busy() -> None:
    with open_folder() as folder:
        truth = answers(SmallGuest(folder / "truth").truth("/usr/bin/python3", "-uSc", RUNNING))
        assert answers(SmallGuest(folder / "traced").traced("/usr/bin/python3", "-uSc", RUNNING)) == truth
    assert truth[0] == 0, truth


# What may be executed is the caller's groups' to say, not the tracer's.
BY_GROUP = """
import os, shutil
for name, group in (("own", 54322), ("other", 54323), ("roots", 0)):
    shutil.copy("/bin/true", f"/spot/{name}")
    os.chown(f"/spot/{name}", 0, group)
    os.chmod(f"/spot/{name}", 0o750)
os.setgroups([54322]); os.setgid(54321); os.setuid(54321)
for name in ("own", "other", "roots"):
    if os.fork() == 0:
        try:
            os.execv(f"/spot/{name}", [name])
        except OSError as error:
            os._exit(error.errno)
    print(name, os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_who_may_execute_by_a_group_alone_may() -> None:
    with open_folder() as folder:
        truth = answers(SmallGuest(folder / "truth").truth("/usr/bin/python3", "-uSc", BY_GROUP))
        assert answers(SmallGuest(folder / "traced").traced("/usr/bin/python3", "-uSc", BY_GROUP)) == truth
    assert truth == (0, ["own 0", "other 13", "roots 13"], "")


def test_exec_by_a_thread_that_is_not_the_leader(guest: SmallGuest) -> None:
    script = """
import os, threading, time
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
words = ["sh", "-c", "cat /proc/$$/comm; readlink /proc/$$/exe; exit 7"]
threading.Thread(target=os.execv, args=("/bin/sh", words)).start()
time.sleep(600)
"""
    truth = answers(guest.truth("/usr/bin/python3", "-S", "-c", script))
    assert answers(guest.traced("/usr/bin/python3", "-S", "-c", script)) == truth
    assert truth[0] == 7
