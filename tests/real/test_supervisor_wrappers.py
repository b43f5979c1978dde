# SPDX-License-Identifier: GPL-3.0-or-later
"""Wrappers and tracers that die, or tell a wrong status."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from supervised import (
    BWRAP,
    BWRAP_COMMAND,
    PROOT,
    PROOT_COMMAND,
    Supervised,
    kernel_tells_endings,
    running,
    until,
)

pytestmark = pytest.mark.real

# As bwrap does: a child sets the guest up, and an exit code is reported only of a program that was started. A shell
# lets what it starts in the background ignore INT; bwrap does not.
SETS_UP = """\
report=/proc/self/fd/$2
env --default-signal sh -c 'echo up > {up}; while :; do sleep 0.02; done' &
echo "{{ \\"child-pid\\": $! }}" > $report
wait $!
exit $?
"""


def test_a_dead_tracer_is_told_and_nothing_of_its_session_is_left(tmp_path: Path) -> None:
    script = f"setsid sleep 600 & echo up > {tmp_path}/up; sleep 600; exit 0"
    session = Supervised(tmp_path / "state", ["sh", "-c", script], wrapper=PROOT_COMMAND, capabilities=PROOT).start()
    session.wait_for(tmp_path / "up")
    os.kill(session.event("guest.started")["pid"], signal.SIGKILL)
    assert session.wait() == 125
    assert session.members() == []
    assert session.event("tracer.died")["how"] == "killed by SIGKILL (signal 9)"
    assert session.event("session.failed")["code"] == "TRACER_DIED"
    assert "the proot tracer died (killed by SIGKILL (signal 9))" in session.ending()["reason"]
    again = Supervised(tmp_path / "state", ["true"], wrapper=PROOT_COMMAND, capabilities=PROOT)
    assert again.run() == 0


def test_a_tracer_whose_tracees_die_with_it_is_told_as_well(tmp_path: Path) -> None:
    # PR_SET_PDEATHSIG stands for PTRACE_O_EXITKILL.
    tracer = (
        "import ctypes, os, signal, sys\n"
        "if (child := os.fork()) == 0:\n"
        "    ctypes.CDLL(None).prctl(1, signal.SIGKILL); os.execvp(sys.argv[1], sys.argv[1:])\n"
        "os.waitpid(child, 0)\n"
    )
    script = f"echo up > {tmp_path}/up; exec sleep 600"
    session = Supervised(
        tmp_path / "state", ["sh", "-c", script], wrapper=[sys.executable, "-c", tracer], capabilities=PROOT
    ).start()
    session.wait_for(tmp_path / "up")
    os.kill(session.event("guest.started")["pid"], signal.SIGKILL)
    assert session.wait() == 125
    assert session.event("session.failed")["code"] == "TRACER_DIED"


def test_a_dead_wrapper_is_not_missed(tmp_path: Path) -> None:
    script = f"echo up > {tmp_path}/up; while ! [ -s {tmp_path}/go ]; do sleep 0.02; done; exit 6"
    session = Supervised(tmp_path / "state", ["sh", "-c", script], wrapper=BWRAP_COMMAND, capabilities=BWRAP).start()
    session.wait_for(tmp_path / "up")
    wrapper = session.event("guest.started")["pid"]
    os.kill(wrapper, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{wrapper}").exists(), "the wrapper is gone and reaped")
    assert session.running.poll() is None
    (tmp_path / "go").write_text("go")
    assert session.wait() == 6
    assert session.ending()["main_status_known"]


def test_term_reaches_a_program_under_a_tracer_that_ignores_it(tmp_path: Path) -> None:
    length = f"600.{os.getpid()}"
    session = Supervised(
        tmp_path / "state", ["sleep", length], wrapper=PROOT_COMMAND, capabilities=PROOT, grace=600
    ).start()
    until(lambda: running("sleep", length), "the program runs")
    session.send(signal.SIGTERM)
    session.wait()
    assert session.members() == []
    assert session.events()[-1]["event"] == "session.stopped"


def test_a_wrapper_that_fails_before_it_starts_anything_is_told_by_its_own_status(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", ["true"], wrapper=["sh", "-c", "exit 77", "wrapper"], capabilities=BWRAP)
    assert session.run() == 77
    assert not session.ending()["main_status_known"]


def test_a_wrapper_that_does_not_end_after_its_child_is_ended(tmp_path: Path) -> None:
    script = f"while ! [ -s {tmp_path}/go ]; do sleep 0.02; done; exit 3"
    wrapper = ["sh", "-c", '"$@"; kill -STOP $$', "wrapper"]
    session = Supervised(tmp_path / "state", ["sh", "-c", script], wrapper=wrapper, capabilities=BWRAP).start()
    session.event("guest.main_program")
    (tmp_path / "go").write_text("go")
    # We had to kill the wrapper; where the kernel does not tell either, the status is lost.
    assert session.wait() == (3 if kernel_tells_endings() else 125)
    assert session.events()[-1].get("code") == ("GUEST_EXIT" if kernel_tells_endings() else "STATUS_LOST")
    wrapper_pid = session.event("guest.started")["pid"]
    assert not Path(f"/proc/{wrapper_pid}").exists()


def test_a_guest_that_bwrap_cannot_set_up_is_our_failure_not_the_program_s_status(tmp_path: Path) -> None:
    wrapper = ["bwrap", "--bind", "/no/such/source", "/mnt", *BWRAP_COMMAND[1:]]
    session = Supervised(tmp_path / "state", ["true"], wrapper=wrapper, capabilities=BWRAP)
    assert session.run() == 125
    assert session.event("session.failed")["code"] == "NOT_STARTED"
    one = Supervised(tmp_path / "state", ["sh", "-c", "exit 1"], wrapper=BWRAP_COMMAND, capabilities=BWRAP)
    assert one.run() == 1


@pytest.mark.parametrize(("command", "capabilities"), [(BWRAP_COMMAND, BWRAP), (PROOT_COMMAND, PROOT)])
@pytest.mark.parametrize("helper", ["sleep 0.3", "sh -c 'sleep 0.3; exit 7'", "(exec sleep 0.3)"])
def test_a_helper_of_a_script_around_the_wrapper_is_not_taken_for_the_program(
    tmp_path: Path, command: tuple[str, ...], capabilities: dict[str, Any], helper: str
) -> None:
    script = tmp_path / command[0]
    script.write_text(f'#!/bin/sh\n{helper} &\nexec {shutil.which(command[0])} "$@"\n')
    script.chmod(0o755)
    program = f"echo $$ > {tmp_path}/pid; read go < {tmp_path}/go; exit 3"
    os.mkfifo(tmp_path / "go")
    wrapper = [str(script), *command[1:]]
    session = Supervised(tmp_path / "state", ["sh", "-c", program], wrapper=wrapper, capabilities=capabilities).start()
    assert session.event("guest.main_program")["pid"] == int(session.wait_for(tmp_path / "pid"))
    (tmp_path / "go").write_text("go\n")
    assert session.wait() == 3


@pytest.mark.parametrize(
    "report", ["{", "\\377\\0", '{"child-pid": 1}', '{"child-pid": 99999999999}', "[[" * 400, '{"exit-code": ', "3"]
)
def test_a_report_that_is_none_does_no_harm(tmp_path: Path, report: str) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(f"#!/bin/sh\nprintf '{report}\\n' > /proc/self/fd/$2\nshift 2\n\"$@\"\n")
    fake.chmod(0o755)
    session = Supervised(tmp_path / "state", ["sh", "-c", "sleep 0.1; exit 4"], wrapper=[str(fake)], capabilities=BWRAP)
    session.start(stderr=subprocess.PIPE)
    _, told = session.running.communicate(timeout=30)
    # The program's own ending is known, or only that the report does not tell of its start.
    assert session.running.returncode in {4, 125}
    assert b"Traceback" not in told
    assert session.members() == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_group_of_a_wrapper_that_sets_up_the_guest_is_no_failure_of_ours(
    tmp_path: Path, signum: signal.Signals
) -> None:
    # As a terminal's Ctrl-C: it reaches the program's group, not us. The wrapper tells it as bwrap does.
    fake = tmp_path / "bwrap"
    fake.write_text(f"#!/bin/sh\ntrap : INT TERM HUP\n{SETS_UP.format(up=tmp_path / 'up')}")
    fake.chmod(0o755)
    session = Supervised(tmp_path / "state", ["true"], wrapper=[str(fake)], capabilities=BWRAP).start()
    main = session.event("guest.main_program")["pid"]
    session.wait_for(tmp_path / "up")
    os.kill(main, signum)
    assert session.wait() == 128 + signum
    assert session.event("session.failed")["code"] == "GUEST_EXIT"


def test_a_request_that_ends_a_wrapper_s_child_before_it_is_the_program_is_no_failure(tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(f"#!/bin/sh\n{SETS_UP.format(up=tmp_path / 'up')}")
    fake.chmod(0o755)
    session = Supervised(tmp_path / "state", ["true"], wrapper=[str(fake)], capabilities=BWRAP).start()
    session.event("guest.main_program")
    session.send(signal.SIGTERM)
    assert session.wait() == 143
    assert session.event("session.stopped")["status"] == 143
