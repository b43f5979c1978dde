# SPDX-License-Identifier: GPL-3.0-or-later
"""droiddeck-inner with real clients: every ending, every restart, every signal."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from unit.programs.conftest import Staged

INNER = "droiddeck-inner"
URL = "steam://rungameid/480"


def shell(script: str, *arguments: str) -> list[str]:
    return ["--", "/bin/sh", "-c", script, "client", *arguments]


def counting(folder: Path, then: str) -> str:
    """A client that notes its arguments and its run's number in $n, then does something."""
    return f'echo "$*" >> "{folder}/runs"; n=$(wc -l < "{folder}/runs"); {then}'


def runs(folder: Path) -> list[str]:
    return (folder / "runs").read_text().splitlines()


@pytest.mark.parametrize("mode", ["steam", "desktop"])
@pytest.mark.parametrize("status", [0, 3, 125, 126, 127, 255])
def test_it_ends_with_the_programs_status(staged: Staged, mode: str, status: int) -> None:
    assert staged.run(INNER, mode, *shell(f"exit {status}")).returncode == status


@pytest.mark.parametrize("mode", ["steam", "desktop"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT, signal.SIGRTMAX])
def test_it_ends_by_the_programs_signal(staged: Staged, mode: str, number: int) -> None:
    assert staged.run(INNER, mode, *shell(f"kill -{number:d} $$")).returncode == -number


def test_it_leaves_no_core_file(staged: Staged, tmp_path: Path) -> None:
    client = '/bin/sh -c "ulimit -c 0; kill -SEGV \\$\\$"'
    script = f'cd "{tmp_path}"; ulimit -c unlimited; exec "{staged.path(INNER)}" steam -- {client}'
    ended = subprocess.run(["/bin/sh", "-c", script], env=staged.environment, check=False)
    assert ended.returncode == -signal.SIGSEGV
    assert not list(tmp_path.glob("core*"))


def test_a_missing_program_is_127_with_one_line(staged: Staged) -> None:
    ended = staged.run(INNER, "steam", "--", "/no/such client")
    assert ended.returncode == 127
    assert ended.stderr == b"droiddeck-inner: cannot run /no/such client: No such file or directory\n"


def test_a_program_that_cannot_run_is_126_with_one_line(staged: Staged, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("text")
    ended = staged.run(INNER, "steam", "--", str(tmp_path / "plain"))
    assert ended.returncode == 126
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["steam"],
        ["steam", "--"],
        ["other", "--", "true"],
        ["steam", "--url", "--", "true"],
        ["steam", "--restarts", "many", "--", "true"],
        ["steam", "--color", "red", "--", "true"],
        ["desktop", "--url", URL, "--", "true"],
    ],
)
def test_bad_usage_is_125_with_one_line(staged: Staged, words: list[str]) -> None:
    ended = staged.run(INNER, *words)
    assert ended.returncode == 125
    assert ended.stderr.startswith(b"droiddeck-inner: ")
    assert ended.stderr.count(b"\n") == 1


def test_a_client_that_updates_for_ever_is_restarted_three_times_without_urls(staged: Staged, tmp_path: Path) -> None:
    script = shell(counting(tmp_path, "exit 42"), "-gamepadui")
    ended = staged.run(INNER, "steam", "--url", URL, "--url", "steam://open/games", *script)
    assert ended.returncode == 42
    assert runs(tmp_path) == [f"-gamepadui {URL} steam://open/games", *["-gamepadui"] * 3]
    assert b"not started any more" in ended.stderr


def test_a_client_that_updates_twice_ends_with_its_last_status(staged: Staged, tmp_path: Path) -> None:
    ended = staged.run(INNER, "steam", *shell(counting(tmp_path, "[ $n -gt 2 ] && exit 7; exit 42")))
    assert ended.returncode == 7
    assert len(runs(tmp_path)) == 3


def test_the_restart_status_and_its_limit_can_be_given(staged: Staged, tmp_path: Path) -> None:
    ended = staged.run(INNER, "steam", "--restart-status", "9", "--restarts", "1", *shell(counting(tmp_path, "exit 9")))
    assert ended.returncode == 9
    assert len(runs(tmp_path)) == 2


def test_a_marked_restart_is_not_counted_and_drops_the_urls(staged: Staged, tmp_path: Path) -> None:
    marked = f'[ $n -le 5 ] && : > "{staged.runtime}/restart-once" && exit 0; exit 42'
    ended = staged.run(INNER, "steam", "--url", URL, *shell(counting(tmp_path, marked)))
    assert ended.returncode == 42
    assert runs(tmp_path) == [URL, *[""] * (5 + 3)]
    assert not (staged.runtime / "restart-once").exists()


@pytest.mark.parametrize("others", ["", "restart-once"])
def test_a_requested_stop_wins_over_every_restart(staged: Staged, tmp_path: Path, others: str) -> None:
    marks = f'cd "{staged.runtime}"; for mark in stop-requested {others}; do : > $mark; done; exit 42'
    assert staged.run(INNER, "steam", *shell(counting(tmp_path, marks))).returncode == 42
    assert len(runs(tmp_path)) == 1
    assert not list(staged.runtime.glob("*-*"))


def test_markers_of_an_earlier_session_mean_nothing(staged: Staged, tmp_path: Path) -> None:
    for name in ("restart-once", "stop-requested"):
        (staged.runtime / name).touch()
    assert staged.run(INNER, "steam", *shell(counting(tmp_path, "[ $n = 2 ] && exit 5; exit 42"))).returncode == 5
    assert len(runs(tmp_path)) == 2


def test_a_session_without_a_runtime_folder_still_restarts(staged: Staged, tmp_path: Path) -> None:
    script = shell(counting(tmp_path, "[ $n = 2 ] && exit 5; exit 42"))
    assert staged.run(INNER, "steam", *script, XDG_RUNTIME_DIR="").returncode == 5


def test_a_desktop_is_run_once_and_its_markers_are_left_alone(staged: Staged, tmp_path: Path) -> None:
    (staged.runtime / "restart-once").touch()
    assert staged.run(INNER, "desktop", *shell(counting(tmp_path, "exit 42"))).returncode == 42
    assert len(runs(tmp_path)) == 1
    assert (staged.runtime / "restart-once").exists()


SIGNAL_CLIENT = """
import os, signal, sys
asked = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
signal.pthread_sigmask(signal.SIG_BLOCK, asked)
os.write(1, b"up\\n")
got = []
while signal.SIGUSR2 not in got:
    got.append(signal.sigwait(asked))
    os.write(1, b"got %d\\n" % got[-1])
sys.exit(42 if len(got) > 1 else 0)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_to_it_alone_reaches_the_client_once_and_ends_all_restarts(staged: Staged, number: int) -> None:
    inner = staged.start(INNER, "steam", "--", sys.executable, "-c", SIGNAL_CLIENT)
    staged.wait_for_output("up", "stdout")
    inner.send_signal(number)
    staged.wait_for_output(f"got {number:d}", "stdout")
    assert inner.poll() is None
    inner.send_signal(signal.SIGUSR2)
    assert inner.wait(30) == 42
    assert staged.output("stdout").splitlines() == ["up", f"got {number:d}", f"got {signal.SIGUSR2:d}"]


def test_a_user_signal_does_not_end_the_restarts(staged: Staged) -> None:
    inner = staged.start(INNER, "steam", "--restarts", "1", "--", sys.executable, "-c", SIGNAL_CLIENT)
    staged.wait_for_output("up", "stdout")
    inner.send_signal(signal.SIGUSR1)
    staged.wait_for_output(f"got {signal.SIGUSR1:d}", "stdout")
    inner.send_signal(signal.SIGUSR2)
    staged.wait_for_output("up", "stdout", times=2)
    inner.send_signal(signal.SIGUSR2)
    assert inner.wait(30) == 0


def test_a_client_killed_by_a_passed_signal_is_reported_so(staged: Staged) -> None:
    inner = staged.start(INNER, "steam", *shell("echo up; exec sleep 600"))
    staged.wait_for_output("up", "stdout")
    inner.terminate()
    assert inner.wait(30) == -signal.SIGTERM


TERMINAL_CLIENT = """
import os, signal, sys
got = []
signal.signal(signal.SIGINT, lambda number, frame: (got.append(number), os.write(1, b"interrupted")))
signal.signal(signal.SIGUSR1, lambda number, frame: os.write(1, b"passed on"))
os.write(1, b"up")
sys.stdin.readline()
os.write(1, b"times %d." % len(got))
sys.exit(9)
"""


def test_ctrl_c_reaches_the_client_once(staged: Staged) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        argv = [staged.path(INNER), "steam", "--", sys.executable, "-c", TERMINAL_CLIENT]
        try:
            os.execve(argv[0], argv, staged.environment)
        finally:
            os._exit(126)  # a child that could not exec must not go on as a second pytest
    seen = b""

    def read_to(text: bytes) -> None:
        nonlocal seen
        while text not in seen:
            try:
                seen += os.read(terminal, 4096)
            except OSError:
                pytest.fail(f"the terminal was closed after {seen!r}")

    read_to(b"up")
    os.kill(pid, signal.SIGSTOP)  # so that an interrupt that is passed on too would be a second one
    os.write(terminal, b"\x03")
    read_to(b"interrupted")
    os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGUSR1)  # passed on after the interrupt, if both are
    read_to(b"passed on")
    os.write(terminal, b"\n")
    read_to(b"times 1.")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    os.close(terminal)


def test_the_client_starts_with_the_callers_signal_mask_and_dispositions(staged: Staged) -> None:
    look = ["/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    shown = staged.run(INNER, "steam", "--", *look).stdout.split()[1::2]
    # glibc's posix_spawn leaves its own two signals, 32 and 33, ignored; they mean nothing to a program.
    assert [int(mask, 16) & ~0x180000000 for mask in shown] == [0, 0]


@pytest.mark.parametrize("locale", [{}, {"LANG": "C"}, {"LC_CTYPE": "C"}, {"LC_ALL": "C.UTF-8"}, {"LANG": "xx_XX"}])
def test_the_environment_is_handed_on_exactly(staged: Staged, locale: dict[str, str]) -> None:
    odd = {"EMPTY": "", "NEWLINE": "a\nb", "BYTES": "\udcff\udc80 = "}
    ended = staged.run(INNER, "steam", "--", "/usr/bin/env", "-0", **locale, **odd)
    got = dict(os.fsdecode(entry).split("=", 1) for entry in ended.stdout.split(b"\0") if entry)
    assert got == staged.environment | locale | odd


def test_arguments_are_handed_on_exactly(staged: Staged) -> None:
    odd = [b"", b" a  b ", b"\xff\x80", b"new\nline", b"--", b"--url", b"'\"\\$x", "ü".encode()]
    ended = staged.run(INNER, "steam", "--", "/usr/bin/printf", "%s\\0", *odd)
    assert ended.stdout == b"".join(word + b"\0" for word in odd)


def test_descriptors_of_the_caller_reach_the_client(staged: Staged) -> None:
    reader, writer = os.pipe()
    argv = [staged.path(INNER), "steam", "--", sys.executable, "-c", f"import os; os.write({writer}, b'through')"]
    subprocess.run(argv, env=staged.environment, pass_fds=[writer], check=True, timeout=30)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read() == b"through"


def test_killing_it_leaves_the_client_to_the_sessions_sweep(staged: Staged) -> None:
    inner = staged.start(INNER, "steam", *shell("echo up; exec sleep 600"))
    staged.wait_for_output("up", "stdout")
    inner.kill()
    assert inner.wait(30) == -signal.SIGKILL
    staged.wait_for_alive("sleep", 1)


def test_milestones_go_to_the_log_that_is_there(staged: Staged, tmp_path: Path) -> None:
    log = tmp_path / "session.log"
    log.write_text("before\n")
    staged.run(INNER, "steam", *shell("kill -9 $$"), BL_LOG=str(log))
    first, started, ended = log.read_text().splitlines()
    assert first == "before"
    assert re.fullmatch(r"== STEP \d\d:\d\d:\d\d started sh", started)
    assert re.fullmatch(r"== STEP \d\d:\d\d:\d\d ended with signal 9", ended)


def test_a_log_that_is_not_there_is_not_made(staged: Staged, tmp_path: Path) -> None:
    assert staged.run(INNER, "steam", *shell("exit 4"), BL_LOG=str(tmp_path / "none")).returncode == 4
    assert not (tmp_path / "none").exists()


# What gamescope puts above its child: it adopts and waits for everything that the child leaves behind.
REAPER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
open("/proc/self/comm", "w").write(sys.argv[1])
inner = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
print("status", os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]), flush=True)
left = 0
while True:
    try:
        left += os.waitstatus_to_exitcode(os.wait()[1]) == -9
    except ChildProcessError:
        break
print("killed", left)
"""
LEAVES_TWO = shell("(setsid sleep 600 >/dev/null 2>&1 &); (setsid sleep 600 >/dev/null 2>&1 &); exit 6")


def test_under_gamescope_nothing_keeps_the_compositor_up(staged: Staged) -> None:
    argv = [sys.executable, "-c", REAPER, "gamescopereaper", staged.path(INNER), "steam", *LEAVES_TWO]
    ended = subprocess.run(argv, env=staged.environment, capture_output=True, timeout=30, check=True)
    assert ended.stdout == b"status 6\nkilled 2\n"


@pytest.mark.parametrize(("parent", "mode"), [("gamescopereaper", "desktop"), ("otherreaper", "steam")])
def test_siblings_live_on_in_a_desktop_and_under_any_other_parent(staged: Staged, parent: str, mode: str) -> None:
    argv = [sys.executable, "-c", REAPER, parent, staged.path(INNER), mode, *LEAVES_TWO]
    with subprocess.Popen(argv, env=staged.environment, stdout=subprocess.PIPE) as reaper:
        assert reaper.stdout is not None
        assert reaper.stdout.readline() == b"status 6\n"
        for pid in staged.wait_for_alive("sleep", 2):
            os.kill(pid, signal.SIGTERM)
        assert reaper.stdout.readline() == b"killed 0\n"
