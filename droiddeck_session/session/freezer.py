# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's freezer (cgroup v2), where this process may make a group beside itself.

A frozen process runs no instruction and sees no signal of it, so no shell takes it for a stopped job. Processes are
moved into the group only for the time that they are frozen: moving costs a start more than the rest of it.
Source: Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFIX: Final = "droiddeck-frozen-"
# proc_pid_mountinfo(5), counted before and after the hyphen.
_ROOT, _POINT, _TYPE = 3, 4, 0


class Freezer:
    """A group for frozen processes.

    Args:
        folder: the group's folder.
        mount: where the hierarchy is mounted.
    """

    def __init__(self, folder: Path, mount: Path) -> None:
        self._folder = folder
        self._mount = mount
        self._from: dict[int, Path] = {}

    @classmethod
    def make(cls, name: str) -> Self | None:
        """Make a group beside this process; None where there is no such hierarchy, or it is not ours to change.

        Args:
            name: the session's id.
        """
        mount = _mount_point()
        own = _group_of(os.getpid(), mount) if mount else None
        if mount is None or own is None:
            return None
        folder = own / f"{_PREFIX}{name}"
        try:
            folder.mkdir(exist_ok=True)
            # From the start: whoever is moved in stands still at once.
            (folder / "cgroup.freeze").write_text("1")
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
            return None
        return cls(folder, mount)

    def take(self, pids: Iterable[int]) -> None:
        """Move processes in, which freezes them; one that has ended meanwhile does not matter."""
        for pid in pids:
            came = _group_of(pid, self._mount)
            with contextlib.suppress(OSError):
                (self._folder / "cgroup.procs").write_text(str(pid))
                if came is not None:
                    self._from[pid] = came

    def held(self) -> set[int]:
        """Return the processes in the group: a child that was forked while its parent was moved is one."""
        try:
            return {int(pid) for pid in (self._folder / "cgroup.procs").read_text().split()}
        except OSError:
            return set()

    def at_rest(self) -> bool:
        """Whether all that is in the group stands still."""
        try:
            return "frozen 1" in (self._folder / "cgroup.events").read_text().splitlines()
        except OSError:
            return False

    def release(self) -> None:
        """Let all run again, where they came from, and remove the group."""
        with contextlib.suppress(OSError):
            (self._folder / "cgroup.freeze").write_text("0")
        while held := self.held():
            moved = False
            for pid in held:
                back = self._from.get(pid, self._folder.parent)
                with contextlib.suppress(OSError):
                    (back / "cgroup.procs").write_text(str(pid))
                    moved = True
            if not moved:
                break
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def remove_left(name: str) -> None:
    """Remove the group of a session whose supervisor was killed, once its processes are gone."""
    mount = _mount_point()
    own = _group_of(os.getpid(), mount) if mount else None
    if own is not None:
        with contextlib.suppress(OSError):
            (own / f"{_PREFIX}{name}").rmdir()


def _mount_point() -> Path | None:
    """Return where the whole hierarchy is mounted."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split()
        if after.split()[_TYPE] == "cgroup2" and fields[_ROOT] == "/":
            return Path(fields[_POINT])
    return None


def _group_of(pid: int, mount: Path) -> Path | None:
    """Return the folder of a process's group."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    path = next((line.removeprefix("0::") for line in lines if line.startswith("0::/")), None)
    return None if path is None or "/.." in path else mount / path.lstrip("/")
