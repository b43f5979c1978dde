# SPDX-License-Identifier: GPL-3.0-or-later
"""The session folder: one per run, named `YYYY-MM-DD-NN-slug`, which is the session's id.

`lock` is held (flock) by the supervisor while the session lives and notes how to find its processes. `.complete` is
written last: a folder without it whose lock is free was left by a crash, or by a session whose processes could not be
ended, and the next start ends what is left of that session and finishes it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import fcntl
import os
import re
import shlex
import signal
import stat
import time
from typing import TYPE_CHECKING, Final, Self

from droiddeck_session.errors import EXIT_SIGNAL_BASE, DroiddeckError, FilesError
from droiddeck_session.guest.removal import remove_tree
from droiddeck_session.processes import hold_closed_descriptors, uninterrupted
from droiddeck_session.session.events import EventLog
from droiddeck_session.session.log import SessionLog
from droiddeck_session.session.recovery import COMPLETE, EVENTS, Note, Recovered, finish, recover

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from droiddeck_session.paths import Directories
    from droiddeck_session.session.membership import Identity

LOCK: Final = "lock"
LOG: Final = "session.log"
_NAME: Final = re.compile(r"(\d{4}-\d{2}-\d{2})-(\d{2,})-[a-z0-9-]+")
_SLUG_LENGTH: Final = 24
# Seconds: others hold the lock for milliseconds, and as long as it takes to remove old folders.
_LOCK_LIMIT: Final = 10.0
_LOCK_PAUSE: Final = 0.01
_BEFORE_THE_START: Final = "asked to end before the program was started"


def slug(label: str) -> str:
    """Return a label as part of a folder name: lower case, hyphens for all but letters and digits, 24 characters."""
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:_SLUG_LENGTH].strip("-") or "session"


class SessionFolder:
    """The folder of a session that this process runs; `create` makes it, and as a context it finishes itself.

    Attributes:
        path: the folder.
        id: its name, the session's id.
        events: writes events.jsonl.
        log: writes session.log and warns the person at the terminal.
        recovered: crashed sessions that were ended and finished on the way.
    """

    def __init__(self, path: Path, lock: int, tell: Callable[[str], None]) -> None:
        self.path = path
        self.id = path.name
        self._lock = lock
        self.events = EventLog(path / EVENTS, self.id)
        self.log = SessionLog(path / LOG, self.id, tell)
        self.recovered: tuple[Recovered, ...] = ()
        self._ending = ""
        self._survivors = False

    @staticmethod
    @contextlib.contextmanager
    def create(
        directories: Directories, label: str, keep: int, *, tell: Callable[[str], None] = lambda _: None
    ) -> Iterator[SessionFolder]:
        """Make the folder of a new session, finish those that crashed sessions left, remove old ones; finish it after.

        A request to end may come at any moment: a folder that is made is finished.

        Args:
            directories: where the project keeps things.
            label: what runs: steam, desktop, or the program's name.
            keep: how many complete folders stay.
            tell: gets each warning for the person at the terminal.

        Raises:
            FilesError: the state directory cannot be written, or another start holds it for too long.
        """
        hold_closed_descriptors()
        sessions = directories.sessions
        with contextlib.ExitStack() as stack:
            with _naming_state(sessions):
                sessions.mkdir(mode=0o700, parents=True, exist_ok=True)
                with _locked(sessions):
                    with uninterrupted():
                        folder = stack.enter_context(SessionFolder(*_make(sessions, label), tell))
                    abandoned = list(_abandoned(sessions))
                    _prune(sessions, keep)
            folder.record("session.created", label=label)
            folder.recover(abandoned)
            yield folder

    def recover(self, abandoned: Collection[tuple[Path, int]]) -> None:
        """End what is left of crashed sessions and finish their folders; each comes with its lock."""
        self.recovered = tuple(recover(path, lock) for path, lock in abandoned)
        for one in self.recovered:
            ended, survivors = list(one.ended), list(one.survivors)
            self.events.emit("session.recovered", of=one.session, ended=ended, survivors=survivors)
            if ended or survivors:
                self.log.warning(one.in_words(), of=one.session)

    def write(self, name: str, text: str) -> None:
        """Write a file of the folder, such as plan.json.

        Raises:
            FilesError: it cannot be written.
        """
        with _naming_state(self.path):
            (self.path / name).write_text(text, encoding="utf-8")

    def note(self, token: str, processes: Collection[Identity] = ()) -> None:
        """Note how the next start finds what a crash of this supervisor leaves; each note adds to the one before.

        Args:
            token: the membership token.
            processes: the wrapper and the main program, as far as they are known.

        Raises:
            FilesError: it cannot be written.
        """
        with _naming_state(self.path):
            Note.of(token, processes).write(self._lock)

    def record(self, event: str, **fields: object) -> None:
        """Write an event, and the same into the log; fields must be JSON values."""
        self.events.emit(event, **fields)
        self.log.info(event, **fields)

    def stopped(self, **fields: object) -> None:
        """Record that the session ended as it should. Only the first ending counts."""
        if not self._ending:
            self._ending = "session.stopped"
            self.record(self._ending, **fields)

    def failed(self, code: str, message: str, *, survivors: Collection[str] = (), **fields: object) -> None:
        """Record that the session failed. Only the first ending counts.

        Args:
            code: what went wrong; stable API.
            message: the same in words.
            survivors: processes that could not be ended; the folder is then left for the next start to finish.
            fields: what else there is to know; JSON values.
        """
        if not self._ending:
            self._ending = "session.failed"
            self._survivors = bool(survivors)
            fields = {"code": code, "message": message, "survivors": list(survivors), **fields}
            self.events.emit(self._ending, **fields)
            self.log.error(self._ending, **fields)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Record the error as the ending if there is none yet, mark the folder complete, and let its lock go."""
        with uninterrupted():
            if isinstance(error, DroiddeckError):
                self.failed(error.code, error.message)
            elif isinstance(error, KeyboardInterrupt):
                self.stopped(status=EXIT_SIGNAL_BASE + signal.SIGINT, how=_BEFORE_THE_START)
            elif isinstance(error, SystemExit):
                self.stopped(status=error.code, how=_BEFORE_THE_START)
            else:
                self.failed(
                    "ABANDONED", f"given up by {type(error).__name__}" if error else "given up before it started"
                )
            if not self._survivors:
                for complaint in finish(self.path, self._ending):
                    self.log.error("not removed", why=complaint)
            self.events.close()
            self.log.close()
            os.close(self._lock)


def finish_abandoned(path: Path) -> Recovered | None:
    """End what is left of one session whose supervisor died, and finish its folder; None while somebody runs it.

    Raises:
        OSError: the folder cannot be read.
    """
    lock = _try_lock(path / LOCK)
    return None if lock is None else recover(path, lock)


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
    """Hold the lock under which folders are named, adopted and removed, so none is seen without its own lock.

    Raises:
        FilesError: somebody else holds it for too long. Waiting in the kernel would have no limit.
    """
    deadline = time.monotonic() + _LOCK_LIMIT
    while (lock := _try_lock(sessions / ".lock")) is None:
        if time.monotonic() > deadline:
            raise FilesError(
                code="SESSIONS_LOCKED",
                message=f"another start has held {str(sessions / '.lock')!r} for {_LOCK_LIMIT:.0f} seconds",
                hint=f"see who holds it: fuser -v {shlex.quote(str(sessions / '.lock'))}",
            )
        time.sleep(_LOCK_PAUSE)
    try:
        yield
    finally:
        os.close(lock)


def _try_lock(path: Path) -> int | None:
    """Take the lock that a file is for; None while somebody holds it.

    Raises:
        OSError: it cannot be opened, or is no plain file: a fifo would keep us waiting for what it says.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    with contextlib.ExitStack() as undone:
        undone.callback(os.close, lock)
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        undone.pop_all()
    return lock


def folders(sessions: Path) -> list[Path]:
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
        lock = _try_lock(path / LOCK)
        if lock is not None:
            return path, lock


def _abandoned(sessions: Path) -> Iterator[tuple[Path, int]]:
    for path in folders(sessions):
        # One that cannot be looked into is nobody's reason not to start.
        with contextlib.suppress(OSError):
            if not (path / COMPLETE).exists() and (lock := _try_lock(path / LOCK)) is not None:
                yield path, lock


def _prune(sessions: Path, keep: int) -> None:
    complete = [path for path in folders(sessions) if _is_complete(path)]
    for path in complete[: max(0, len(complete) - keep)]:
        with contextlib.suppress(OSError, DroiddeckError):
            lock = _try_lock(path / LOCK)
            if lock is not None:
                try:
                    # Without the mark first: a removal that is cut short is no complete folder.
                    (path / COMPLETE).unlink()
                    # What programs of the guest left in debug/ may be anything.
                    remove_tree(str(path))
                finally:
                    os.close(lock)


def _is_complete(path: Path) -> bool:
    try:
        return (path / COMPLETE).exists()
    except OSError:
        return False
