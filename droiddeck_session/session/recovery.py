# SPDX-License-Identifier: GPL-3.0-or-later
"""What a supervisor notes for the case that it is killed, and what the next start makes of it.

The note is the text of the folder's `lock`: the membership token, and who the wrapper and the main program are. From
these the next start finds what is left: by the token in the environment of each process, and by descent from the two.
So a program that cleared its environment is found while the chain of its parents holds up to one of them, and lost
once that chain is broken: nothing marks an orphan of init that carries no token.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import anyio

from droiddeck_session.guest.staging import clear
from droiddeck_session.session import sweep
from droiddeck_session.session.events import EventLog, read_events
from droiddeck_session.session.membership import Identity, Membership

if TYPE_CHECKING:
    from collections.abc import Collection

COMPLETE: Final = ".complete"
EVENTS: Final = "events.jsonl"
ENDINGS: Final = frozenset({"session.stopped", "session.failed"})
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_NOTE_SIZE: Final = 4096


@dataclass(frozen=True, kw_only=True)
class Note:
    """How to find a session's processes.

    Attributes:
        token: the membership token.
        processes: the wrapper and the main program, as far as they are known.
        boot: the kernel's boot id, without which a pid with its start time says nothing.
    """

    token: str
    processes: tuple[Identity, ...] = ()
    boot: str

    @classmethod
    def of(cls, token: str, processes: Collection[Identity]) -> Self:
        """Return the note for a session of this boot."""
        return cls(token=token, processes=tuple(processes), boot=_boot())

    @classmethod
    def read(cls, lock: int) -> Self | None:
        """Return the note in a lock file; None where there is none."""
        try:
            found = json.loads(os.read(lock, _NOTE_SIZE))
            processes = tuple(Identity(int(pid), int(start)) for pid, start in found["processes"])
            return cls(token=str(found["token"]), processes=processes, boot=str(found["boot"]))
        except (ValueError, TypeError, KeyError):
            return None

    def write(self, lock: int) -> None:
        """Write the note over an earlier one that knew the same and no more.

        Raises:
            OSError: it cannot be written.
        """
        os.pwrite(lock, json.dumps(vars(self)).encode(), 0)


@dataclass(frozen=True, kw_only=True)
class Recovered:
    """A session whose supervisor had died: the names of its processes that were ended, and of those that were not."""

    session: str
    ended: tuple[str, ...]
    survivors: tuple[str, ...]

    def in_words(self) -> str:
        """Return the line for a person."""
        text = f"session {self.session} had lost its supervisor"
        if self.ended:
            text += f"; ended {len(self.ended)} processes that it left: {', '.join(self.ended)}"
        return f"{text}; still there: {', '.join(self.survivors)}" if self.survivors else text


def recover(path: Path, lock: int) -> Recovered:
    """End what is left of a session whose supervisor died, and finish its folder unless something survived.

    Args:
        path: the session's folder.
        lock: its lock, which the caller holds; closed here.
    """
    note = Note.read(lock)
    ended, survivors = _end_orphans(note) if note is not None and note.boot == _boot() else ((), ())
    with contextlib.suppress(OSError):
        events = EventLog(path / EVENTS, path.name)
        events.emit("session.recovered", ended=list(ended), survivors=list(survivors))
        if not survivors:
            if not any(event["event"] in ENDINGS for event in read_events(path / EVENTS)):
                events.emit("session.failed", code="SUPERVISOR_DIED", message="the supervisor ended before the session")
            finish(path, "recovered")
        events.close()
    os.close(lock)
    return Recovered(session=path.name, ended=ended, survivors=survivors)


def finish(path: Path, reason: str) -> tuple[str, ...]:
    """Remove what only a running session needs from its folder, mark it complete, and return what could not be removed.

    It never fails: a session's status matters more.
    """
    complaints = clear(str(path))
    now = dt.datetime.now().astimezone().isoformat(timespec="seconds")
    mark = path / f"{COMPLETE}.new"
    with contextlib.suppress(OSError):
        mark.write_text(f"collected: {reason} at {now}\n", encoding="utf-8")
        mark.rename(path / COMPLETE)
    return complaints


def _end_orphans(note: Note) -> tuple[tuple[str, ...], tuple[str, ...]]:
    membership = Membership(note.token, ancestor=None, known=note.processes)
    orphans = membership.living()
    if not orphans:
        return (), ()
    survivors = anyio.run(sweep.kill, membership)
    left = {process.identity for process in survivors}
    ended = tuple(process.in_words() for process in orphans if process.identity not in left)
    return ended, tuple(process.in_words() for process in survivors)


def _boot() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
