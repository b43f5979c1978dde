# SPDX-License-Identifier: GPL-3.0-or-later
"""The guest programs, laid out as in a guest, started as real processes by two Pythons, and swept away after each."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROGRAMS: Final = Path(__file__).parents[3] / "droiddeck_session" / "guest" / "programs"
LAYOUT: Final = {
    "droiddeck-inner": "droiddeck_inner.py",
    "droiddeck-game-env": "game_env.py",
    "stand-in/steam": "stand_in_steam.py",
    "stand-in/web-helper": "stand_in_web_helper.py",
    "stand-in/reaper": "stand_in_reaper.py",
    "stand-in/proton": "stand_in_proton.py",
    "stand-in/game": "stand_in_game.py",
    "stand-in/desktop": "stand_in_desktop.py",
}
LIMIT: Final = 30.0
# Resolved: a virtual environment may lie under a path with a space, which no "#!" line can name.
INTERPRETERS: Final = tuple(dict.fromkeys(os.path.realpath(path) for path in ("/usr/bin/python3", sys.executable)))


def wait_for(condition: Callable[[], bool]) -> None:
    """Return when the condition holds; fail when it does not within a generous time."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "the awaited condition did not come"
        time.sleep(0.01)


class Staged:
    """A folder that looks like the guest's /opt/droiddeck, with a HOME and a runtime folder of its own."""

    def __init__(self, folder: Path, interpreter: str) -> None:
        self.folder = folder / "opt droiddeck"
        self.interpreter = interpreter
        self.token = uuid.uuid4().hex
        self.started: list[subprocess.Popen[bytes]] = []
        self.runtime = folder / "run"
        self.home = folder / "home"
        self.runtime.mkdir(mode=0o700)
        self.home.mkdir()
        (self.folder / "stand-in").mkdir(parents=True)
        for name, source in LAYOUT.items():
            text = (PROGRAMS / source).read_text(encoding="utf-8")
            head, _, rest = text.partition("\n")
            staged = self.folder / name
            staged.write_text(f"{head.replace('/usr/bin/python3', interpreter)}\n{rest}", encoding="utf-8")
            staged.chmod(0o755)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    @property
    def environment(self) -> dict[str, str]:
        """What each program gets, and nothing else: no locale at all, as after `env -i`."""
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "DROIDDECK_SESSION": self.token,
        }

    def run(self, name: str, *arguments: str | bytes, **variables: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [self.path(name), *arguments],
            env=self.environment | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )

    def start(self, name: str, *arguments: str | bytes, **variables: str) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own; stdout and stderr go to files, see `output`."""
        with (self.runtime / "stdout").open("wb") as stdout, (self.runtime / "stderr").open("wb") as stderr:
            started = subprocess.Popen(
                [self.path(name), *arguments],
                env=self.environment | variables,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        self.started.append(started)
        return started

    def output(self, stream: str = "stderr") -> str:
        return (self.runtime / stream).read_text(encoding="utf-8", errors="surrogateescape")

    def wait_for_output(self, text: str, stream: str = "stderr", times: int = 1) -> None:
        wait_for(lambda: self.output(stream).count(text) >= times)

    def wait_for_alive(self, comm: str, count: int) -> list[int]:
        wait_for(lambda: len(self.alive(comm)) == count)
        return self.alive(comm)

    def wait_until_gone(self, comm: str = "") -> None:
        wait_for(lambda: not self.alive(comm))

    def alive(self, comm: str = "") -> list[int]:
        """Return the living processes of this test, of one name if it is given."""
        mark = f"DROIDDECK_SESSION={self.token}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal() or int(entry.name) == os.getpid():
                continue
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                named = (entry / "comm").read_text().strip()
                if state != "Z" and comm in ("", named) and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


@pytest.fixture
def layout() -> dict[str, str]:
    """Where each file of guest/programs/ stands below /opt/droiddeck in these tests."""
    return LAYOUT


@pytest.fixture(params=INTERPRETERS)
def staged(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Staged]:
    if shutil.which(request.param) is None:
        pytest.fail(f"{request.param} is missing; the guest programs are tested with it")
    programs = Staged(tmp_path, request.param)
    yield programs

    def swept() -> bool:
        remaining = programs.alive()
        for pid in remaining:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return not remaining

    wait_for(swept)
    for started in programs.started:
        started.wait(LIMIT)
