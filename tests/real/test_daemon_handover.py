# SPDX-License-Identifier: GPL-3.0-or-later
"""A foreground verb that a daemon runs: it ends, prints, reads and is signalled as without one."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from daemons import Daemon
from supervised import running, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("daemon")) as one:
        yield one


def taken(daemon: Daemon) -> int:
    """Return how many sessions the daemon has had."""
    return len(daemon.json("status")["sessions"])


@pytest.mark.parametrize(
    ("argv", "status"),
    [
        (["true"], 0), (["sh", "-c", "exit 3"], 3), (["/etc/passwd"], 126), (["/nonexistent"], 127),
        (["sh", "-c", "kill -KILL $$"], 137),
    ],
    ids=str,
)  # fmt: skip
def test_the_status_is_the_programs(daemon: Daemon, argv: list[str], status: int) -> None:
    before = taken(daemon)
    daemon("run", "--", *argv, status=status, start_new_session=True)
    assert taken(daemon) == before + 1


def test_descriptors_environment_and_working_directory_are_the_callers(daemon: Daemon, tmp_path: Path) -> None:
    text = tmp_path / "text"
    with text.open("wb") as out:
        done = subprocess.run(
            daemon.argv("run", "--env", "ONLY=this", "--", "sh", "-c", "echo $ONLY; cat; echo err >&2; umask"),
            env=daemon.environ, input=b"given\n", stdout=out, stderr=subprocess.PIPE, umask=0o027, timeout=50,
            start_new_session=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, b"err")
    assert text.read_bytes() == b"this\ngiven\n0027\n"


def test_an_error_is_told_as_without_a_daemon(daemon: Daemon) -> None:
    through = daemon(
        "run", "--guest", "/nowhere", "--backend", "bwrap", "--", "true", status=125, start_new_session=True
    )
    alone = daemon("run", "--no-daemon", "--guest", "/nowhere", "--backend", "bwrap", "--", "true", status=125)
    assert through.stderr == alone.stderr != b""


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1])
def test_signals_reach_the_program(daemon: Daemon, tmp_path: Path, signum: signal.Signals) -> None:
    mark = tmp_path / "ready"
    name = signum.name.removeprefix("SIG")
    script = f"trap 'exit 42' {name}; echo > '{mark}'; while :; do sleep 0.01; done"
    with subprocess.Popen(
        daemon.argv("run", "--", "sh", "-c", script), env=daemon.environ, stdin=subprocess.DEVNULL,
        start_new_session=True,
    ) as verb:  # fmt: skip
        until(mark.exists, "it runs")
        verb.send_signal(signum)
        assert verb.wait(50) == 42


def test_a_second_request_kills(daemon: Daemon, tmp_path: Path) -> None:
    mark = tmp_path / "ready"
    script = f"trap '' TERM; echo > '{mark}'; while :; do sleep 0.01; done"
    with subprocess.Popen(
        daemon.argv("run", "--grace", "600", "--", "sh", "-c", script), env=daemon.environ, stdin=subprocess.DEVNULL,
        start_new_session=True,
    ) as verb:  # fmt: skip
        until(mark.exists, "it runs")
        verb.send_signal(signal.SIGTERM)
        asked = time.monotonic()
        # Within 0.1 s two are one.
        until(lambda: time.monotonic() - asked > 0.3, "the second is a second one")
        verb.send_signal(signal.SIGTERM)
        assert verb.wait(50) == 137


def test_a_killed_verb_ends_its_session(daemon: Daemon) -> None:
    with subprocess.Popen(
        daemon.argv("run", "--", "sleep", "1055"), env=daemon.environ, stdin=subprocess.DEVNULL, start_new_session=True
    ) as verb:
        until(lambda: running("sleep", "1055"), "it runs")
        verb.kill()
    until(lambda: not running("sleep", "1055"), "it has ended")


def test_a_killed_daemon_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        with subprocess.Popen(
            daemon.argv("run", "--", "sleep", "1056"), env=daemon.environ, stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, start_new_session=True,
        ) as verb:  # fmt: skip
            until(lambda: running("sleep", "1056"), "it runs")
            daemon.kill()
            _, told = verb.communicate(timeout=50)
        assert (verb.returncode, b"DAEMON_GONE" in told) == (125, True)
        until(lambda: not running("sleep", "1056"), "it has ended")


def test_who_has_a_terminal_keeps_the_session(daemon: Daemon) -> None:
    before = taken(daemon)
    parent, child = pty.openpty()
    code = (
        "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)\n"
        "os.execv(sys.executable, sys.argv[2:])"
    )
    try:
        subprocess.run(
            [sys.executable, "-c", code, str(child), *daemon.argv("run", "--", "true")], env=daemon.environ,
            pass_fds=[child], stdin=subprocess.DEVNULL, timeout=50, check=True,
        )  # fmt: skip
    finally:
        os.close(parent)
        os.close(child)
    assert taken(daemon) == before


def test_other_limits_or_namespaces_keep_the_session(daemon: Daemon) -> None:
    before = taken(daemon)

    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NPROC, (5000, 5000))

    done = daemon("run", "--", "bash", "-c", "ulimit -u", preexec_fn=lower, start_new_session=True)
    assert done.stdout == b"5000\n"
    if os.geteuid() == 0:
        subprocess.run(
            ["unshare", "--mount", "--", *daemon.argv("run", "--", "true")], env=daemon.environ, timeout=50, check=True,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    assert taken(daemon) == before


def test_a_program_has_the_limits_that_the_daemon_was_given(daemon: Daemon) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    done = daemon("run", "--", "sh", "-c", "ulimit -Sn", start_new_session=True)
    assert done.stdout.decode().strip() == str(soft)


def test_a_closed_descriptor_stays_closed(daemon: Daemon) -> None:
    done = subprocess.run(
        ["bash", "-c", 'exec "$@" <&-', "bash", *daemon.argv("run", "--", "sh", "-c", "test -e /proc/self/fd/0")],
        env=daemon.environ, timeout=50, start_new_session=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
