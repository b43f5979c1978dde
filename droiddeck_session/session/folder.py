# SPDX-License-Identifier: GPL-3.0-or-later
"""The session folder: one per run, named `YYYY-MM-DD-NN-slug`, which is the session's id.

`lock` is held (flock) by the supervisor while the session lives and names its token. `.complete` is written last: a
folder without it whose lock is free was left by a crash, and the next start ends what is left of that session and
finishes it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from droiddeck_session.errors import DroiddeckError, FilesError
from droiddeck_session.guest.staging import clear
from droiddeck_session.processes import hold_closed_descriptors
from droiddeck_session.session.events import EventLog, read_events
from droiddeck_session.session.log import SessionLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from droiddeck_session.paths import Directories

COMPLETE: Final = ".complete"
LOCK: Final = "lock"
EVENTS: Final = "events.jsonl"
LOG: Final = "session.log"
ENDINGS: Final = frozenset({"session.stopped", "session.failed"})
_NAME: Final = re.compile(r"(\d{4}-\d{2}-\d{2})-(\d{2,})-[a-z0-9-]+")
_SLUG_LENGTH: Final = 24
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, kw_only=True)
class Recovered:
    """A session whose supervisor had died: how many of its processes were ended, the names of those that were not."""

    session: str
    ended: int
    survivors: tuple[str, ...]


def slug(label: str) -> str:
    """Return a label as part of a folder name: lower case, hyphens for all but letters and digits, 24 characters."""
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:_SLUG_LENGTH].strip("-") or "session"


class SessionFolder:
    """The folder of a session that this process runs; a context, which finishes it.

    Attributes:
        path: the folder.
        id: its name, the session's id.
        events: writes events.jsonl.
        log: writes session.log.
        recovered: crashed sessions that were ended and finished on the way.
    """

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self.id = path.name
        self._lock = lock
        self.events = EventLog(path / EVENTS, self.id)
        self.log = SessionLog(path / LOG, self.id)
        self.recovered: tuple[Recovered, ...] = ()
        self._ending = ""

    @classmethod
    def create(cls, directories: Directories, label: str, keep: int) -> Self:
        """Make the folder of a new session; finish folders that crashed sessions left, and remove old ones.

        Args:
            directories: where the project keeps things.
            label: what runs: steam, desktop, or the program's name.
            keep: how many complete folders stay.

        Raises:
            FilesError: the state directory cannot be written.
        """
        hold_closed_descriptors()
        sessions = directories.sessions
        with _naming_state(sessions):
            sessions.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _locked(sessions):
                folder = cls(*_make(sessions, label))
                abandoned = list(_abandoned(sessions))
                _prune(sessions, keep)
            folder.events.emit("session.created", label=label)
        folder.recovered = tuple(_recover(path, lock) for path, lock in abandoned)
        for one in folder.recovered:
            folder.events.emit("session.recovered", of=one.session, ended=one.ended, survivors=list(one.survivors))
            if one.ended or one.survivors:
                folder.log.warning(_recovery_in_words(one))
        return folder

    def write(self, name: str, text: str) -> None:
        """Write a file of the folder, such as plan.json.

        Raises:
            FilesError: it cannot be written.
        """
        with _naming_state(self.path):
            (self.path / name).write_text(text, encoding="utf-8")

    def note_token(self, token: str) -> None:
        """Note the membership token, by which the next start finds what a crash of this supervisor leaves.

        Raises:
            FilesError: it cannot be written.
        """
        with _naming_state(self.path):
            os.pwrite(self._lock, json.dumps({"pid": os.getpid(), "boot": _boot(), "token": token}).encode(), 0)

    def stopped(self, **fields: object) -> None:
        """Record that the session ended as it should. Only the first ending counts."""
        self._end("session.stopped", fields)

    def failed(self, code: str, message: str, **fields: object) -> None:
        """Record that the session failed. Only the first ending counts."""
        self._end("session.failed", {"code": code, "message": message, **fields})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Record the error as the ending if there is none yet, mark the folder complete, and let its lock go."""
        if isinstance(error, DroiddeckError):
            self.failed(error.code, error.message)
        else:
            self.failed("ABANDONED", f"given up by {type(error).__name__}" if error else "given up before it started")
        _finish(self.path, self._ending)
        self.events.close()
        self.log.close()
        os.close(self._lock)

    def _end(self, event: str, fields: dict[str, object]) -> None:
        if not self._ending:
            self._ending = event
            self.events.emit(event, **fields)


@contextlib.contextmanager
def _naming_state(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FilesError(
            code="STATE_NOT_WRITABLE",
            message=f"session folder {str(folder)!r} cannot be written: {error.strerror}",
            hint="make it writable, free some space, or set XDG_STATE_HOME to a folder that is",
        ) from error


@contextlib.contextmanager
def _locked(sessions: Path) -> Iterator[None]:
    """Hold the lock under which folders are named, adopted and removed, so none is seen without its own lock."""
    lock = os.open(sessions / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _try_lock(folder: Path) -> int | None:
    """Take a folder's own lock; None while its session lives."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _folders(sessions: Path) -> list[Path]:
    """Return all session folders, oldest first."""
    found = [(match[1], int(match[2]), path) for path in sessions.iterdir() if (match := _NAME.fullmatch(path.name))]
    return [path for *_, path in sorted(found)]


def _make(sessions: Path, label: str) -> tuple[Path, int]:
    day = dt.datetime.now().astimezone().date().isoformat()
    names = [match for path in sessions.iterdir() if (match := _NAME.fullmatch(path.name))]
    numbers = [int(match[2]) for match in names if match[1] == day]
    number = max(numbers, default=0) + 1
    while True:
        path = sessions / f"{day}-{number:02}-{slug(label)}"
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            number += 1
            continue
        lock = _try_lock(path)
        if lock is not None:
            return path, lock


def _abandoned(sessions: Path) -> Iterator[tuple[Path, int]]:
    for path in _folders(sessions):
        if not (path / COMPLETE).exists():
            with contextlib.suppress(OSError):
                lock = _try_lock(path)
                if lock is not None:
                    yield path, lock


def _prune(sessions: Path, keep: int) -> None:
    complete = [path for path in _folders(sessions) if (path / COMPLETE).exists()]
    for path in complete[: max(0, len(complete) - keep)]:
        with contextlib.suppress(OSError):
            lock = _try_lock(path)
            if lock is not None:
                # Without the mark first: a removal that is cut short is no complete folder.
                (path / COMPLETE).unlink()
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _recover(path: Path, lock: int) -> Recovered:
    """End what is left of a session whose supervisor died, and finish its folder unless something survived."""
    try:
        note = json.loads(os.read(lock, 4096))
    except ValueError:
        note = {}
    ended, survivors = 0, tuple[str, ...]()
    if isinstance(note, dict) and note.get("boot") == _boot() and isinstance(note.get("token"), str):
        ended, survivors = _end_orphans(note["token"])
    with contextlib.suppress(OSError):
        events = EventLog(path / EVENTS, path.name)
        events.emit("session.recovered", ended=ended, survivors=list(survivors))
        if not survivors:
            if not any(event["event"] in ENDINGS for event in read_events(path / EVENTS)):
                events.emit("session.failed", code="SUPERVISOR_DIED", message="the supervisor ended before the session")
            _finish(path, "recovered")
        events.close()
    os.close(lock)
    return Recovered(session=path.name, ended=ended, survivors=survivors)


def _end_orphans(token: str) -> tuple[int, tuple[str, ...]]:
    """Kill the processes that carry a token, the only mark left; return their number and the survivors' names."""
    from droiddeck_session.session.membership import Membership  # noqa: PLC0415 - only after a crash

    membership = Membership(token, ancestor=None)
    orphans = membership.living()
    if not orphans:
        return 0, ()
    import anyio  # noqa: PLC0415 - only after a crash that left processes

    from droiddeck_session.session.sweep import kill  # noqa: PLC0415 - as above

    survivors = anyio.run(kill, membership)
    return len(orphans) - len(survivors), tuple(f"{process.name} ({process.pid})" for process in survivors)


def _finish(path: Path, reason: str) -> None:
    clear(str(path))
    now = dt.datetime.now().astimezone().isoformat(timespec="seconds")
    mark = path / f"{COMPLETE}.new"
    with contextlib.suppress(OSError):
        mark.write_text(f"collected: {reason} at {now}\n", encoding="utf-8")
        mark.rename(path / COMPLETE)


def _boot() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _recovery_in_words(one: Recovered) -> str:
    text = f"session {one.session} had lost its supervisor; ended {one.ended} processes that it left"
    return f"{text}; still there: {', '.join(one.survivors)}" if one.survivors else text
