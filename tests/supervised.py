# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives a real supervisor in a process of its own: what a foreground verb does, less the plan.

The tests' half starts that process, watches its session folder and /proc, and waits for conditions, never for times.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import pytest

from droiddeck_session.backends.interface import HostCommand
from droiddeck_session.paths import directories
from droiddeck_session.plan.capabilities import Capabilities
from droiddeck_session.session.folder import SessionFolder
from droiddeck_session.session.foreground import supervise
from droiddeck_session.settings import SessionSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DIRECT: Final = {"backend": "direct", "main_status": True, "signal_status": True}
BWRAP: Final = {"backend": "bwrap", "main_status": True, "signal_status": True, "stays_parent": True}
PROOT: Final = {"backend": "proot", "stays_parent": True, "traces": True}
# Roots at / need no guest: these tests are about processes.
BWRAP_COMMAND: Final = ("bwrap", "--dev-bind", "/", "/")
PROOT_COMMAND: Final = ("proot", "-r", "/")
# Each with its wrapper and what it can do, for pytest.mark.parametrize.
BACKENDS: Final[list[Any]] = [
    pytest.param((), DIRECT, id="direct"),
    pytest.param(BWRAP_COMMAND, BWRAP, id="bwrap"),
    pytest.param(PROOT_COMMAND, PROOT, id="proot"),
]
GENEROUS: Final = 30.0
_STARTED: Final[list[Supervised]] = []


def main(argument: str) -> int:
    """Supervise one command as a foreground verb does, and write its ending beside the state directory."""
    wanted: dict[str, Any] = json.loads(argument)
    state = Path(wanted["state"])
    token = wanted.get("token") or secrets.token_hex(16)
    inner = ["/usr/bin/env", "-i", f"PATH={PATH}", "TERM=dumb", f"DROIDDECK_SESSION={token}", *wanted["argv"]]
    report = "--json-status-fd" if Path(*wanted["wrapper"][:1]).name == "bwrap" else ""
    command = HostCommand(argv=(*wanted["wrapper"], *inner), env={"PATH": PATH}, cwd="/", report_option=report)
    with SessionFolder.create(directories({"XDG_STATE_HOME": str(state)}), "test", 5, tell=tell) as folder:
        ending = supervise(
            command,
            capabilities=Capabilities(available=True, **wanted["capabilities"]),
            token=token,
            folder=folder,
            settings=SessionSettings(grace=wanted["grace"], linger=wanted["linger"]),
        )
    (state / "ending.json").write_text(json.dumps(vars(ending)))
    return ending.status


def tell(text: str) -> None:
    """Print a line for the person, as the command line does."""
    sys.stderr.write(f"droiddeck-session: {text}\n")
    sys.stderr.flush()


@functools.cache
def kernel_tells_endings() -> bool:
    """Whether this kernel (6.15 and later) tells how a process that is not our child ended; asked of the kernel."""
    with subprocess.Popen(["true"]) as program:
        pidfd = os.pidfd_open(program.pid)
    try:
        # PIDFD_GET_INFO with PIDFD_INFO_EXIT, which comes back in the mask where the kernel knows it.
        return bool(fcntl.ioctl(pidfd, 0xC040FF0B, (8).to_bytes(64, sys.byteorder))[0] & 8)
    except OSError:
        return False
    finally:
        os.close(pidfd)


def status_beside_leftovers(status: int, wrapper: Sequence[str]) -> int:
    """Return what a session ends with whose main program leaves others behind.

    Stock proot tells the status of whichever process ended last; where the kernel does not tell either, it is lost.
    """
    return 125 if tuple(wrapper) == PROOT_COMMAND and not kernel_tells_endings() else status


def until(condition: Callable[[], T], what: str, seconds: float = GENEROUS) -> T:
    """Wait for a condition and return its value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.01)
    return value


class Supervised:
    """A supervisor that runs a command, seen from outside."""

    def __init__(
        self,
        state: Path,
        argv: Sequence[str],
        *,
        capabilities: dict[str, Any] = DIRECT,
        wrapper: Sequence[str] = (),
        grace: float = 20.0,
        linger: float = 0.2,
    ) -> None:
        state.mkdir(exist_ok=True)
        self.state = state
        self.token = secrets.token_hex(16)
        wanted = {
            "state": str(state), "argv": list(argv), "wrapper": list(wrapper), "capabilities": capabilities,
            "grace": grace, "linger": linger, "token": self.token,
        }  # fmt: skip
        self.argv = [sys.executable, __file__, json.dumps(wanted)]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, **options: Any) -> Self:
        """Start it; its output is read by nobody unless asked for."""
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.DEVNULL)
        self.process = subprocess.Popen(self.argv, env=environment(), **options)
        _STARTED.append(self)
        return self

    @property
    def running(self) -> subprocess.Popen[bytes]:
        """The supervisor's process."""
        assert self.process is not None
        return self.process

    def wait(self, seconds: float = GENEROUS) -> int:
        """Wait for the supervisor's end and return its status."""
        return self.running.wait(seconds)

    def run(self, **options: Any) -> int:
        """Start it and wait for its end."""
        return self.start(**options).wait()

    def send(self, signum: int) -> None:
        """Send the supervisor a signal."""
        self.running.send_signal(signum)

    @property
    def folder(self) -> Path:
        """The newest session folder."""
        return max((self.state / "droiddeck-session/sessions").glob("2*"))

    def events(self) -> list[dict[str, Any]]:
        """Return the newest session's events so far."""
        try:
            return [json.loads(line) for line in (self.folder / "events.jsonl").read_bytes().splitlines()]
        except (ValueError, OSError):
            return []

    def event(self, name: str) -> dict[str, Any]:
        """Wait for an event and return it."""
        return until(lambda: next((event for event in self.events() if event["event"] == name), {}), name)

    def ending(self) -> dict[str, Any]:
        """Return the Ending that the supervisor returned."""
        ending: dict[str, Any] = json.loads((self.state / "ending.json").read_text())
        return ending

    def members(self) -> list[int]:
        """Return the living processes that carry this session's token."""
        return carriers(f"DROIDDECK_SESSION={self.token}")

    def wait_for(self, path: Path) -> str:
        """Wait until the program has written a file, and return its text."""
        return until(lambda: path.read_text() if path.exists() else "", f"{path} written")


def end_all() -> None:
    """End what a failed test left, so that the next one finds a quiet machine."""
    while _STARTED:
        session = _STARTED.pop()
        if session.running.poll() is None:
            session.running.kill()
            session.wait()
        for stream in (session.running.stdout, session.running.stderr):
            if stream is not None:
                stream.close()
        for pid in session.members():
            os.kill(pid, signal.SIGKILL)


def environment() -> dict[str, str]:
    """Return the environment of the driver: the project's sources come first."""
    root = Path(__file__).parent.parent
    sources = f"{root}:{root}/backends/proot:{root}/backends/fastpath:{os.environ.get('PYTHONPATH', '')}"
    return {**os.environ, "PYTHONPATH": sources}


def state_of(pid: int) -> str:
    """Return a process's state letter, empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def parent_of(pid: int) -> int:
    """Return a process's parent."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def carriers(entry: str) -> list[int]:
    """Return the processes that run and have an entry in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and entry.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return [pid for pid in found if state_of(pid) not in {"", "Z", "X"}]


def running(*argv: str) -> list[int]:
    """Return the processes that run exactly this command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes() == b"".join(word.encode() + b"\0" for word in argv):
                found.append(int(folder.name))
        except OSError:
            continue
    return [pid for pid in found if state_of(pid) not in {"", "Z", "X"}]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
