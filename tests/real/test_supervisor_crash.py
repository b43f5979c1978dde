# SPDX-License-Identifier: GPL-3.0-or-later
"""A supervisor that is killed or falls over: what it leaves is ended, by the next start or by itself."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from supervised import Supervised, running, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import CommandLine

pytestmark = pytest.mark.real


@pytest.fixture
def lengths() -> Iterator[tuple[str, str]]:
    """Two arguments for /bin/sleep that nobody else gives it; what still sleeps after a failed test is ended."""
    one, two = (f"600.{secrets.randbelow(10**9)}" for _ in range(2))
    yield one, two
    for pid in [*running("/bin/sleep", one), *running("/bin/sleep", two)]:
        os.kill(pid, signal.SIGKILL)


def test_the_next_start_ends_what_a_killed_supervisor_left(tmp_path: Path) -> None:
    crashed = Supervised(tmp_path / "state", ["sh", "-c", "setsid sleep 600 & sleep 600"]).start()
    bystander = subprocess.Popen(["sleep", "600"], env={"DROIDDECK_SESSION": "0" * 32})
    until(lambda: len(crashed.members()) == 3, "the session's three processes")
    folder = crashed.folder
    crashed.running.kill()
    crashed.wait()
    assert len(crashed.members()) == 3
    following = Supervised(tmp_path / "state", ["true"]).start(stderr=subprocess.PIPE)
    _, told = following.running.communicate(timeout=30)
    assert following.running.returncode == 0
    assert f"session {folder.name} had lost its supervisor; ended 3 processes that it left: ".encode() in told
    assert told.count(b"sleep (") == 2
    assert crashed.members() == []
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events][-2:] == ["session.recovered", "session.failed"]
    assert [name.partition(" ")[0] for name in sorted(events[-2]["ended"])] == ["sh", "sleep", "sleep"]
    assert events[-1]["code"] == "SUPERVISOR_DIED"
    assert (folder / ".complete").exists()


@pytest.mark.parametrize("backend", ["direct", "bwrap", "chroot", "proot"])
def test_programs_that_cleared_their_environment_are_ended_too(
    cli: CommandLine, backend: str, lengths: tuple[str, str]
) -> None:
    # They carry no token: the wrapper's environment, or the main program's noted identity, leads to them.
    one, two = lengths
    script = f"env -i /bin/sleep {one} & exec env -i /bin/sleep {two}"
    with subprocess.Popen(
        cli.argv("run", "--backend", backend, "--", "sh", "-c", script), env=cli.environ, stdin=subprocess.DEVNULL
    ) as crashed:
        until(lambda: running("/bin/sleep", one) and running("/bin/sleep", two), "both programs")
        if backend in {"bwrap", "proot"}:
            until(lambda: "guest.main_program" in (cli.sessions()[0] / "events.jsonl").read_text(), "the note")
        crashed.kill()
    assert running("/bin/sleep", one)
    assert running("/bin/sleep", two)
    following = cli("run", "--backend", backend, "--", "true")
    assert following.returncode == 0
    assert b"sleep (" in following.stderr
    assert not running("/bin/sleep", one)
    assert not running("/bin/sleep", two)
    assert (cli.sessions()[0] / ".complete").exists()


@pytest.mark.parametrize(("method", "signum"), [("relay", signal.SIGUSR1), ("_kill_after_grace", signal.SIGTERM)])
def test_a_fault_of_ours_leaves_nothing_running(tmp_path: Path, method: str, signum: int) -> None:
    script = f"trap '' TERM; setsid sleep 600 & echo up > {tmp_path}/up; sleep 600"
    session = Supervised(tmp_path / "state", ["sh", "-c", script])
    faulty = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "import supervised\n"
        "from droiddeck_session.session.supervisor import Supervisor\n"
        f"Supervisor.{method} = lambda *_: 1 / 0\n"
        "sys.exit(supervised.main(sys.argv[1]))\n"
    )
    session.argv = [sys.executable, "-c", faulty, session.argv[-1]]
    session.start(stderr=subprocess.PIPE)
    session.wait_for(tmp_path / "up")
    session.send(signum)
    _, told = session.running.communicate(timeout=30)
    assert session.running.returncode == 1
    assert b"ZeroDivisionError" in told
    assert session.members() == []
    assert session.events()[-1]["code"] == "ABANDONED"
