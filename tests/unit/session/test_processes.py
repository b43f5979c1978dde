# SPDX-License-Identifier: GPL-3.0-or-later
"""Starting programs: an interruption loses none of them, and a start that fails leaves none."""

from __future__ import annotations

import errno
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from supervised import running, until

from droiddeck_session import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Interrupted(BaseException):
    """What the handlers here raise, as those of the command line raise SystemExit."""


@contextmanager
def handled(*signums: int) -> Iterator[None]:
    def end(signum: int, _frame: object) -> None:
        raise Interrupted(signum)

    before = {signum: signal.signal(signum, end) for signum in signums}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def test_a_command_line_that_is_too_long_is_told_by_its_beginning() -> None:
    with pytest.raises(processes.ProcessError, match="Argument list too long") as refusal:
        processes.run(["true", "x" * 200_000])
    assert "fewer or shorter" in refusal.value.hint
    assert "cut off: it has 200005 characters" in refusal.value.hint
    assert len(refusal.value.hint) < 5000


def test_an_interruption_waits_for_the_end_of_the_block() -> None:
    reached = []
    with handled(signal.SIGTERM, signal.SIGHUP), pytest.raises(Interrupted) as raised:  # noqa: PT012 - it is the point
        with processes.uninterrupted():
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGTERM)
            reached.append("end")
        reached.append("after")
    assert reached == ["end"]
    assert raised.value.args == (signal.SIGHUP,)


def test_what_is_ignored_or_at_its_default_is_left_alone() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with processes.uninterrupted():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


WAITS: list[Any] = [
    pytest.param(lambda argv: processes.run(argv, time_limit=50), id="run"),
    pytest.param(lambda argv: processes.stream(argv, on_line=print), id="stream"),
]


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_that_is_cut_short_ends_the_whole_group(tmp_path: Path, wait: Callable[[list[str]], object]) -> None:
    length = f"600.{os.getpid()}"
    up = tmp_path / "up"
    script = f"sleep {length} & : > {up}; kill -TERM {os.getpid()}; exec sleep {length}"
    with handled(signal.SIGTERM), pytest.raises(Interrupted):
        wait(["sh", "-c", script])
    assert up.exists()
    # We wait for the group's leader; the kernel ends the others in its own time.
    until(lambda: not running("sleep", length), "the group has ended", 10)


def test_a_program_that_cannot_be_watched_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    length = f"600.{os.getpid()}"

    def full(_pid: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pidfd_open", full)
    with pytest.raises(processes.ProcessError, match="Too many open files"):
        processes.spawn(["sleep", length], env={"PATH": os.environ["PATH"]}, cwd="/")
    assert running("sleep", length) == []
