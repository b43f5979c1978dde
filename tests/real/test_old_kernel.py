# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel before 6.15, which tells nobody but the parent how a process ended: the wrapper's word is all there is."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import old_kernel
import pytest
from supervised import BACKENDS, BWRAP, BWRAP_COMMAND, DIRECT, PROOT, PROOT_COMMAND, Supervised

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.real

OLD = [sys.executable, old_kernel.__file__]
# wrapper, what it can do, the status and signal of a program that TERM ends
ENDED_BY_TERM: list[Any] = [
    pytest.param((), DIRECT, (143, 15), id="direct"),
    pytest.param(BWRAP_COMMAND, BWRAP, (143, None), id="bwrap"),
    pytest.param(PROOT_COMMAND, PROOT, (255, None), id="proot"),
]


def supervised(tmp_path: Path, script: str, wrapper: tuple[str, ...], capabilities: dict[str, Any]) -> Supervised:
    session = Supervised(
        tmp_path / "state", ["bash", "-c", script], wrapper=wrapper, capabilities=capabilities, grace=0.3
    )
    session.argv = [*OLD, *session.argv]
    return session


def test_the_filter_answers_as_an_old_kernel_does() -> None:
    # The answer of one that does not know the request; other requests pass.
    code = (
        "import errno, fcntl, os, termios\n"
        "try: fcntl.ioctl(os.pidfd_open(os.getpid()), 0xC040FF0B, bytes(64))\n"
        "except OSError as error: assert error.errno == errno.ENOTTY\n"
        "else: raise SystemExit('it answers')\n"
        "reader, writer = os.pipe(); os.write(writer, b'four')\n"
        "assert fcntl.ioctl(reader, termios.FIONREAD, bytes(4))[0] == 4\n"
    )
    subprocess.run([*OLD, sys.executable, "-c", code], check=True, timeout=30)


@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_an_exit_is_told(tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any]) -> None:
    session = supervised(tmp_path, "exit 3", wrapper, capabilities)
    assert session.run() == 3
    assert session.event("session.failed")["main_status_known"] is (wrapper == ())


@pytest.mark.parametrize(("wrapper", "capabilities", "expected"), ENDED_BY_TERM)
def test_a_signal_is_what_the_wrapper_makes_of_it(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any], expected: tuple[int, int | None]
) -> None:
    session = supervised(tmp_path, "kill -TERM $$", wrapper, capabilities)
    assert session.run() == expected[0]
    assert session.ending()["signal"] == expected[1]


@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_a_session_that_we_killed_is_told_as_killed(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any]
) -> None:
    script = f"trap '' TERM; echo up > {tmp_path}/up; while :; do sleep 0.05; done"
    session = supervised(tmp_path, script, wrapper, capabilities).start()
    session.wait_for(tmp_path / "up")
    session.send(signal.SIGTERM)
    assert session.wait() == 137
    assert session.event("session.stopped")["signal"] == "SIGKILL"


def test_a_tracer_that_tells_the_status_of_the_last_to_end_is_not_believed(tmp_path: Path) -> None:
    session = supervised(tmp_path, "(trap '' TERM; sleep 600; exit 7) & exit 3", PROOT_COMMAND, PROOT)
    assert session.run() == 125
    assert session.event("session.failed")["code"] == "STATUS_LOST"
