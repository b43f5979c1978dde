# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes belong to a session, and signalling exactly these.

A process is a member if it descends from the supervisor (a subreaper, so an orphan comes back to it), carries the
session's token in its environment, descends from such a process, or was seen as a member before. Parent links alone
do not do: a branch whose middle process has ended is lost. Identity is (pid, start time); a signal goes through a
pidfd whose start time was checked. Every error with one process (gone, a zombie, not ours to read) concerns that
process alone.
"""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

TOKEN_VARIABLE: Final = "DROIDDECK_SESSION"  # noqa: S105 - the name of a variable
_NO_PIDS: Final[frozenset[int]] = frozenset()
# proc_pid_stat(5): fields counted after the last ")", which a command name may hold too.
_STATE, _PPID, _PGRP, _SESSION, _STARTTIME = 0, 1, 2, 3, 19


class Identity(NamedTuple):
    """One process for good: a pid is reused, a pid with its start time (in clock ticks since boot) is not."""

    pid: int
    start: int


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """What /proc/PID/stat says."""

    identity: Identity
    name: str
    state: str
    parent: int
    group: int
    session: int

    @property
    def pid(self) -> int:
        """The process id."""
        return self.identity.pid

    @property
    def ended(self) -> bool:
        """Whether it is a zombie or dead: it runs no more and only waits for its parent."""
        return self.state in "ZXx"

    def in_words(self) -> str:
        """Return `sleep (123)`."""
        return f"{self.name} ({self.pid})"


def parse_stat(text: bytes) -> ProcessStat | None:
    """Read one /proc/PID/stat; None for a text that is none."""
    pid, _, rest = text.partition(b" (")
    name, _, tail = rest.rpartition(b")")
    fields = tail.split()
    try:
        return ProcessStat(
            identity=Identity(int(pid), int(fields[_STARTTIME])),
            name=os.fsdecode(name),
            state=fields[_STATE].decode(),
            parent=int(fields[_PPID]),
            group=int(fields[_PGRP]),
            session=int(fields[_SESSION]),
        )
    except (ValueError, IndexError):
        return None


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a Path per process and scan costs more than the read
        return file.readall() or b""


def read_stat(pid: int) -> ProcessStat | None:
    """Return what is known about a process; None when it is gone."""
    try:
        return parse_stat(_read(f"/proc/{pid}/stat"))
    except OSError:
        return None


def every_process() -> dict[int, ProcessStat]:
    """Return all processes of this machine by pid, zombies too."""
    names = os.listdir("/proc")  # noqa: PTH208 - a Path per process costs more than the read
    found = (read_stat(int(name)) for name in names if name.isdigit())
    return {process.pid: process for process in found if process is not None}


def children(pid: int) -> list[int]:
    """Return the children of a process's main thread, oldest first; by a scan where the kernel has no list of them."""
    try:
        return [int(child) for child in _read(f"/proc/{pid}/task/{pid}/children").split()]
    except OSError:
        found = [process for process in every_process().values() if process.parent == pid]
        return [process.pid for process in sorted(found, key=lambda process: process.identity.start)]


def descends(pid: int, ancestor: int) -> bool:
    """Whether a process descends from another one now."""
    seen: set[int] = set()
    while pid != ancestor:
        process = read_stat(pid)
        if process is None or pid in seen:
            return False
        seen.add(pid)
        pid = process.parent
    return True


def read_words(pid: int, name: Literal["cmdline", "environ"]) -> list[bytes]:
    """Return a process's arguments or its first environment; nothing of one that is gone, a zombie or not ours."""
    try:
        return _read(f"/proc/{pid}/{name}").removesuffix(b"\0").split(b"\0")
    except OSError:
        return []


def send(identity: Identity, signum: int) -> bool:
    """Send a signal to exactly this process; False when it is gone or not ours to signal."""
    try:
        pidfd = os.pidfd_open(identity.pid)
    except OSError:
        return False
    try:
        current = read_stat(identity.pid)
        if current is None or current.identity != identity:
            return False
        signal.pidfd_send_signal(pidfd, signum)
    except OSError:
        return False
    finally:
        os.close(pidfd)
    return True


class Membership:
    """The members of one session.

    Args:
        token: the session's random id, the value of DROIDDECK_SESSION in its environment.
        ancestor: process whose descendants are all members (the supervisor itself is none); None after a crash.
        known: processes that are members by what was noted of them.
    """

    def __init__(self, token: str, *, ancestor: int | None, known: Iterable[Identity] = ()) -> None:
        self._entry = f"{TOKEN_VARIABLE}={token}".encode()
        self._ancestor = ancestor
        self._known = set(known)

    def living(self, *, besides: Collection[int] = _NO_PIDS) -> list[ProcessStat]:
        """Return the members that run now, without the pids in `besides`."""
        processes = every_process()
        outside = {os.getpid(), *((self._ancestor,) if self._ancestor else ())}
        roots = [pid for pid, process in processes.items() if process.identity in self._known]
        roots += [self._ancestor] if self._ancestor else []
        members = _descendants(processes, roots)
        carriers = [pid for pid in processes.keys() - members - outside if self._carries_token(pid)]
        members |= _descendants(processes, carriers)
        living = [processes[pid] for pid in members - outside if not processes[pid].ended]
        self._known = {process.identity for process in living}
        return sorted(
            (process for process in living if process.pid not in besides), key=lambda process: process.identity
        )

    def _carries_token(self, pid: int) -> bool:
        return self._entry in read_words(pid, "environ")


def _descendants(processes: dict[int, ProcessStat], roots: Iterable[int]) -> set[int]:
    by_parent: dict[int, list[int]] = defaultdict(list)
    for pid, process in processes.items():
        by_parent[process.parent].append(pid)
    found: set[int] = set()
    waiting = [pid for pid in roots if pid in processes]
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += by_parent[pid]
    return found


def reap_adopted(*, spoken_for: Collection[int]) -> None:
    """Reap zombies that came to us as their subreaper, but not the children whose status somebody waits for."""
    for pid in children(os.getpid()):
        process = read_stat(pid)
        if pid in spoken_for or process is None or not process.ended:
            continue
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            continue
