# SPDX-License-Identifier: GPL-3.0-or-later
"""A prepared tree on the host: made, looked at after each case, and made as it was again.

The host sees the tree without the backend between: what a case did is told in host paths, so a file that lands below a
mount point instead of in what is mounted there is seen.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from droiddeck_session.diagnostics.verify.prepared import ATTRIBUTE, SCRATCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from droiddeck_session.diagnostics.verify.prepared import Entry

# The time of everything in the prepared tree, and those that cases set (verify_writes.py), in nanoseconds.
PREPARED: Final = 1_000_000_000 * 10**9
TIMES: Final = {
    PREPARED: "prepared",
    1_111_111_111 * 10**9 + 111: "set 1.111",
    1_111_111_111 * 10**9: "set 1",
    1_222_222_222 * 10**9 + 222: "set 2.222",
    1_222_222_222 * 10**9: "set 2",
}
# A program's content is not read again: only that its size stays.
_LONGEST_SHOWN: Final = 4096


@dataclass(frozen=True)
class State:
    """What an entry is; `look` is compared and `quick` tells whether looking is worth while."""

    look: tuple[str, ...]
    quick: tuple[int, ...]
    inode: int


class Tree:
    """The tree of one run.

    Args:
        folder: the host's folder of the run, empty.
        entries: what to make there; parents first.
        held: what must not be made anew if it can be moved back, parents first.
    """

    def __init__(self, folder: str, entries: Mapping[str, Entry], held: Sequence[str] = ()) -> None:
        self._held = held
        self.folder = folder
        self._entries = entries
        self._bytes = os.fsencode(folder) + b"/"
        self._paths = {path: self._bytes + os.fsencode(path) for path in entries}
        for path in entries:
            self._make(path)
        self._settle(set(entries))
        self._pristine = {path: self._state(path, os.lstat(self._host(path))) for path in entries}
        self._now = dict(self._pristine)
        self.device = os.lstat(folder).st_dev
        self._names: dict[int, str] = {}
        self._name()

    def name(self, inode: int) -> str:
        """Return what an inode of the tree is called: its first path, or that it is new and where."""
        known = self._names.get(inode)
        if known is not None:
            return known
        for path, found in self._walk():
            if found.st_ino == inode:
                return f"new {path}"
        return "of nothing in the tree"

    def changes(self, *, closely: bool = False) -> list[str]:
        """Return what is not as it was prepared, one line each; empty where all is.

        Args:
            closely: look at everything, also where times and sizes do not tell of a change.
        """
        if not closely and self._untouched():
            self._now = dict(self._pristine)
            return []
        before = self._pristine
        self._now = now = {path: self._seen(path, found, closely=closely) for path, found in self._walk()}
        lines = [f"- {path}" for path in before if path not in now]
        for path, state in now.items():
            if path not in before:
                known = self._names.get(state.inode)
                lines.append(f"+ {path} {'is ' + known if known else ' '.join(state.look)}")
            elif state.look != before[path].look or state.inode != before[path].inode:
                lines.append(f"~ {path} {self._difference(before[path], state)}")
        return sorted(lines)

    def restore(self) -> None:
        """Make everything as it was before the `changes` that were told last; what is as it was keeps its inode."""
        reopened, moved = self._reopen(), self._move_back()
        if reopened or moved:
            self.changes(closely=True)
        now, before = self._now, self._pristine
        anew = self._remove_what_is_not_ours()
        changed = {path for path in before if path not in anew and now[path] != before[path]}
        for path, entry in self._entries.items():
            if path in anew:
                self._make(path)
            elif path in changed and entry.kind == "file" and not entry.hard:
                self._rewrite(path)
        self._settle(anew | changed)
        for path in self._entries:
            self._pristine[path] = self._seen(path, os.lstat(self._host(path)), closely=path in changed)
        if anew:
            self._name()

    def _remove_what_is_not_ours(self) -> set[str]:
        """Remove what is new or has taken another's place; return what of the tree is missing then."""
        now, before = self._now, self._pristine
        for path in sorted(now, key=len, reverse=True):
            if path not in before or now[path].inode != before[path].inode:
                self._remove(path)
        missing = {path for path in before if path not in now or now[path].inode != before[path].inode}
        for path, entry in self._entries.items():
            # The second name of a file that is made anew is one of the old file.
            if entry.hard in missing and path not in missing:
                self._remove(path)
                missing.add(path)
        return missing

    def _reopen(self) -> bool:
        """Let the owner into folders that lost their mode."""
        reopened = False
        for path, entry in self._entries.items():
            if entry.kind != "folder":
                continue
            with contextlib.suppress(OSError):
                found = os.lstat(self._host(path))
                if (
                    stat.S_ISDIR(found.st_mode)
                    and found.st_mode & entry.mode & stat.S_IRWXU != entry.mode & stat.S_IRWXU
                ):
                    os.chmod(self._host(path), entry.mode)
                    reopened = True
        return reopened

    def _move_back(self) -> bool:
        """Move what is held back to its place: a mount ends with what it is on."""
        moved = False
        for path in self._held:
            inode = self._pristine[path].inode
            if path in self._now and self._now[path].inode == inode:
                continue
            there = [place for place, found in self._walk() if found.st_ino == inode]
            if there and path not in there:
                self._remove(path)
                # What held it may be gone as well: then it is made anew like all else.
                with contextlib.suppress(FileNotFoundError):
                    os.rename(self._host(there[0]), self._host(path))
                    moved = True
        return moved

    def remove(self) -> None:
        """Remove the tree, and what no owner may list in it."""
        _remove_all(self._bytes)

    def _seen(self, path: str, found: os.stat_result, *, closely: bool) -> State:
        known = self._pristine.get(path)
        return known if known and not closely and known.quick == _quick(found) else self._state(path, found)

    def _difference(self, before: State, now: State) -> str:
        parts = [f"{old} -> {new}" for old, new in zip(before.look, now.look, strict=False) if old != new]
        if now.inode != before.inode:
            parts.append("is " + self._names.get(now.inode, "another file"))
        return ", ".join(parts)

    def _host(self, path: str) -> bytes:
        return self._paths.get(path) or self._bytes + os.fsencode(path)

    def _name(self) -> None:
        self._names = {}
        for path in self._entries:
            self._names.setdefault(self._pristine[path].inode, path)

    def _untouched(self) -> bool:
        try:
            return all(_quick(os.lstat(self._paths[path])) == state.quick for path, state in self._pristine.items())
        except OSError:
            return False

    def _walk(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield everything that is there with what lstat says; closed folders have nothing in them."""
        waiting = ["root", "host"]
        while waiting:
            path = waiting.pop()
            try:
                found = os.lstat(self._host(path))
            except OSError:
                continue
            yield path, found
            if stat.S_ISDIR(found.st_mode) and path != SCRATCH:
                with contextlib.suppress(PermissionError):
                    waiting += (f"{path}/{os.fsdecode(name)}" for name in os.listdir(self._host(path)))

    def _state(self, path: str, found: os.stat_result) -> State:
        host = self._host(path)
        kind = stat.S_IFMT(found.st_mode)
        look = [f"type {kind:o}", f"mode {stat.S_IMODE(found.st_mode):04o}", f"owner {found.st_uid}:{found.st_gid}"]
        if path == SCRATCH:
            return State(tuple(look), _quick(found), found.st_ino)
        look += [f"links {found.st_nlink}", f"modified {_time(found.st_mtime_ns)}", *_accessed(found.st_atime_ns)]
        if kind != stat.S_IFDIR:
            look.append(f"size {found.st_size}")
        if kind == stat.S_IFLNK:
            look.append(f"to {os.readlink(host)!r}")
        elif kind == stat.S_IFREG and found.st_size <= _LONGEST_SHOWN:
            look.append(f"holds {_read(host)}")
        if kind in {stat.S_IFREG, stat.S_IFDIR}:
            look.append(f"attribute {_attribute(host)!r}")
        return State(tuple(look), _quick(found), found.st_ino)

    def _make(self, path: str) -> None:
        entry, host = self._entries[path], self._host(path)
        if entry.hard:
            os.link(self._host(entry.hard), host)
        elif entry.kind == "folder":
            os.mkdir(host)
        elif entry.kind == "link":
            os.symlink(entry.content, host)
        elif entry.kind == "fifo":
            os.mkfifo(host)
        else:
            with open(host, "wb") as file:
                file.write(entry.content)

    def _rewrite(self, path: str) -> None:
        """Give a file its content again where that has changed."""
        content, host = self._entries[path].content, self._host(path)
        os.chmod(host, 0o600)
        if os.lstat(host).st_size != len(content) or (len(content) <= _LONGEST_SHOWN and _read(host) != repr(content)):
            with open(host, "wb") as file:
                file.write(content)

    def _settle(self, touched: set[str]) -> None:
        """Give entries their owner, attribute, mode and time; what lies in a folder before the folder."""
        for path in reversed(list(self._entries)):
            entry, host = self._entries[path], self._host(path)
            found = os.lstat(host)
            if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(host, os.geteuid(), os.getegid(), follow_symlinks=False)
            if path in touched and entry.kind in {"file", "folder"} and not entry.hard:
                _set_attribute(host, entry.attribute)
            if (
                entry.kind != "link"
                and not entry.hard
                and (path in touched or stat.S_IMODE(found.st_mode) != entry.mode)
            ):
                os.chmod(host, entry.mode)
            # Looking sets the time of access, so that is not worth a change of each file that was looked at.
            if path in touched or found.st_mtime_ns != PREPARED:
                os.utime(host, ns=(PREPARED, PREPARED), follow_symlinks=False)

    def _remove(self, path: str) -> None:
        host = self._host(path)
        try:
            if stat.S_ISDIR(os.lstat(host).st_mode):
                os.rmdir(host)
            else:
                os.unlink(host)
        except FileNotFoundError:
            pass
        except OSError:
            _remove_all(host)


def _remove_all(folder: bytes) -> None:
    """Remove a folder, also where its owner may not list what is in it."""
    os.chmod(folder, 0o700)
    for parent, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            if not stat.S_ISLNK(os.lstat(path).st_mode):
                os.chmod(path, 0o700)
    shutil.rmtree(folder)


def _quick(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_ino, found.st_mode, found.st_nlink, found.st_uid, found.st_gid, found.st_size, found.st_mtime_ns,
            found.st_ctime_ns)  # fmt: skip


def _time(nanoseconds: int) -> str:
    return TIMES.get(nanoseconds, "since")


def _accessed(nanoseconds: int) -> list[str]:
    """Return the time of access only where a case set it: looking sets it as well."""
    return [f"accessed {TIMES[nanoseconds]}"] if nanoseconds in TIMES and nanoseconds != PREPARED else []


def _read(host: bytes) -> str:
    try:
        with open(host, "rb") as file:
            return repr(file.read())
    except OSError as error:
        return str(error.strerror)


def _attribute(host: bytes) -> bytes:
    try:
        return os.getxattr(host, ATTRIBUTE, follow_symlinks=False)
    except OSError:
        return b""


def _set_attribute(host: bytes, value: bytes) -> None:
    """Set the attribute, or remove it; a file system without attributes has none, under every backend."""
    if _attribute(host) == value:
        return
    with contextlib.suppress(OSError):
        if value:
            os.setxattr(host, ATTRIBUTE, value)
        else:
            os.removexattr(host, ATTRIBUTE)
