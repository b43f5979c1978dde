# SPDX-License-Identifier: GPL-3.0-or-later
"""What `verify` asks without changing anything: one row per call and way to call it.

A row's function gets a directory descriptor and a path and returns a text; an OSError is an answer as well. Rows that
are not `at` use the path alone.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct

from verify_calls import (
    AT_EACCESS,
    AT_EMPTY_PATH,
    AT_FDCWD,
    AT_SYMLINK_NOFOLLOW,
    IN_ALL_EVENTS,
    IN_DONT_FOLLOW,
    IN_ONLYDIR,
    STATX_BASIC_STATS,
    buffer,
    call,
    descriptor_text,
    kind_of,
    shown,
    stat_text,
    statx_text,
)

TYPE_CHECKING = False  # the name that checkers know; importing typing would cost a start
if TYPE_CHECKING:
    from collections.abc import Callable

    Ask = Callable[[int, bytes], str]


class Row:
    """One way to ask.

    Args:
        name: in a case's id.
        needs: the system call; the row is left out on a machine that has none of this number.
        ask: asks it.
        at: whether it takes a directory descriptor.
        refusal: what a tracer may answer instead, if anything.
        one_in: it is asked of one path in so many, unless all are wanted.
    """

    def __init__(
        self, name: str, needs: str, ask: Ask, *, at: bool = False, refusal: str = "", one_in: int = 1
    ) -> None:
        self.name, self.needs, self.ask, self.at, self.refusal = name, needs, ask, at, refusal
        self.one_in = one_in


ATTRIBUTE = b"user.droiddeck"
OPEN_TREE_CLOEXEC = os.O_CLOEXEC
# ST_NOSUID, ST_NODEV (bits/statvfs.h): what a backend mounts with beside what the plan asks for; bwrap does.
_MOUNTED_WITH = 2 | 4
# linux/openat2.h
RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH, RESOLVE_IN_ROOT = 0x04, 0x08, 0x10


class OpenHow(ctypes.Structure):
    """`struct open_how` of linux/openat2.h."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def _stat(name: str) -> Ask:
    def ask(_: int, path: bytes) -> str:
        filled = buffer(256)
        call(name, path, filled)
        return stat_text(filled)

    return ask


def _fstatat(flags: int) -> Ask:
    def ask(at: int, path: bytes) -> str:
        filled = buffer(256)
        call("newfstatat", at, path, filled, flags)
        return stat_text(filled)

    return ask


def _statx(flags: int) -> Ask:
    def ask(at: int, path: bytes) -> str:
        filled = buffer(256)
        call("statx", at, path, flags, STATX_BASIC_STATS, filled)
        return statx_text(filled)

    return ask


def _access(mode: int) -> Ask:
    return lambda _, path: str(call("access", path, mode))


def _faccessat(mode: int) -> Ask:
    return lambda at, path: str(call("faccessat", at, path, mode))


def _faccessat2(mode: int, flags: int) -> Ask:
    return lambda at, path: str(call("faccessat2", at, path, mode, flags))


def _readlink(_: int, path: bytes) -> str:
    text = buffer()
    length = call("readlink", path, text, len(text))
    return shown(text.raw[:length])


def _readlinkat(size: int) -> Ask:
    def ask(at: int, path: bytes) -> str:
        text = buffer(size + 8)
        length = call("readlinkat", at, path, text, size)
        beyond = "" if not any(text.raw[length:]) else " and wrote beyond"
        said = shown(text.raw[:length])
        # The number of a process or thread has as many digits as it has.
        return f"{'-' if 'id>' in said else length} {said}{beyond}"

    return ask


def _open(_: int, path: bytes) -> str:
    return descriptor_text(call("open", path, os.O_RDONLY | os.O_NONBLOCK))


def _openat(flags: int) -> Ask:
    return lambda at, path: descriptor_text(call("openat", at, path, flags | os.O_NONBLOCK | os.O_NOCTTY))


def _openat2(flags: int, resolve: int) -> Ask:
    def ask(at: int, path: bytes) -> str:
        how = OpenHow(flags | os.O_NONBLOCK, 0, resolve)
        return descriptor_text(call("openat2", at, path, how, ctypes.sizeof(how)))

    return ask


def _open_tree(at: int, path: bytes) -> str:
    return descriptor_text(call("open_tree", at, path, OPEN_TREE_CLOEXEC))


def _handle(at: int, path: bytes) -> str:
    # struct file_handle (bits/fcntl-linux.h): size, type, bytes; those name the inode, so only their number is told
    handle, mount = buffer(8 + 128), ctypes.c_int()
    struct.pack_into("I", handle, 0, 128)
    call("name_to_handle_at", at, path, handle, ctypes.cast(ctypes.byref(mount), ctypes.c_char_p), 0)  # type: ignore[arg-type]
    return f"{struct.unpack_from('I', handle)[0]} bytes"


def _statfs(_: int, path: bytes) -> str:
    filled = buffer(256)
    call("statfs", path, filled)
    kind, block = struct.unpack_from("qq", filled)
    name_length, fragment, flags = struct.unpack_from("qqq", filled, 64)
    return f"type {kind:x} block {block} names {name_length} fragment {fragment} flags {flags & ~_MOUNTED_WITH:x}"


def _chdir(_: int, path: bytes) -> str:
    call("chdir", path)
    where = buffer()
    length = call("getcwd", where, len(where))
    return f"{shown(where.raw[:length])} {len(os.listdir('.')) > 0}"


def _list(at: int, path: bytes) -> str:
    opened = call("openat", at, path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if os.fstat(opened).st_dev != os.stat("/links").st_dev:
            return "a folder of another file system"
        with os.scandir(opened) as entries:
            found = sorted((os.fsencode(entry.name), entry.inode(), _entry_kind(entry)) for entry in entries)
        device = os.fstat(opened).st_dev
    finally:
        os.close(opened)
    return ", ".join(f"{shown(name)} {kind} <file {device} {inode}>" for name, inode, kind in found)


def _entry_kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    return kind_of(stat.S_IFDIR) if entry.is_dir(follow_symlinks=False) else "other"


def _attribute(name: str) -> Ask:
    def ask(_: int, path: bytes) -> str:
        text = buffer(256)
        length = call(name, path, ATTRIBUTE, text, 200)
        return shown(text.raw[:length])

    return ask


def _attributes(name: str) -> Ask:
    def ask(_: int, path: bytes) -> str:
        text = buffer(4096)
        length = call(name, path, text, 4000)
        names = text.raw[:length].split(b"\0")
        return " ".join(sorted(shown(entry) for entry in names if entry.startswith(b"user.")))

    return ask


def _getxattrat(at: int, path: bytes) -> str:
    # struct xattr_args (linux/xattr.h): value, size, flags
    text = buffer(256)
    words = struct.pack("QII", ctypes.addressof(text), 200, 0)
    length = call("getxattrat", at, path, 0, ATTRIBUTE, words, len(words))
    return shown(text.raw[:length])


def _watch(flags: int) -> Ask:
    """Watch a path; the descriptor's own entry in procfs says which inode is watched (proc(5), fdinfo)."""

    def ask(_: int, path: bytes) -> str:
        opened = ctypes.CDLL(None, use_errno=True).inotify_init1(os.O_CLOEXEC)
        try:
            number = call("inotify_add_watch", opened, path, IN_ALL_EVENTS | flags)
            with open(f"/proc/self/fdinfo/{opened}", encoding="ascii") as lines:
                fields = next(line for line in lines if line.startswith("inotify")).split()
        finally:
            os.close(opened)
        inode = next(int(field[4:], 16) for field in fields if field.startswith("ino:"))
        return f"watch {number} of <file {os.stat('/links').st_dev} {inode}>"

    return ask


def _realpath(_: int, path: bytes) -> str:
    """Ask libc's realpath(3): many calls, of which each follows from the last one's answer."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.realpath.restype = ctypes.c_char_p
    place = buffer()
    found = libc.realpath(path, place)
    if found is None:
        raise OSError(ctypes.get_errno(), "realpath")
    return shown(found)


READS = (
    Row("stat", "stat", _stat("stat"), one_in=2),
    Row("lstat", "lstat", _stat("lstat")),
    Row("fstatat", "newfstatat", _fstatat(0), at=True),
    Row("fstatat-nofollow", "newfstatat", _fstatat(AT_SYMLINK_NOFOLLOW), at=True),
    Row("fstatat-empty", "newfstatat", _fstatat(AT_EMPTY_PATH), at=True, one_in=3),
    Row("fstatat-bad-flag", "newfstatat", _fstatat(0x8000000), at=True, one_in=20),
    Row("statx", "statx", _statx(0), at=True),
    Row("statx-nofollow", "statx", _statx(AT_SYMLINK_NOFOLLOW), at=True, one_in=2),
    Row("statx-empty", "statx", _statx(AT_EMPTY_PATH), at=True, one_in=3),
    Row("statx-bad-flag", "statx", _statx(0x8000000), at=True, one_in=20),
    Row("access", "access", _access(os.F_OK), one_in=3),
    Row("access-r", "access", _access(os.R_OK), one_in=4),
    Row("access-w", "access", _access(os.W_OK)),
    Row("access-x", "access", _access(os.X_OK), one_in=3),
    Row("access-bad-mode", "access", _access(0o10), one_in=20),
    Row("faccessat", "faccessat", _faccessat(os.F_OK), at=True, one_in=2),
    Row("faccessat-rw", "faccessat", _faccessat(os.R_OK | os.W_OK), at=True, one_in=3),
    Row("faccessat2", "faccessat2", _faccessat2(os.R_OK, 0), at=True, one_in=2),
    Row("faccessat2-eaccess", "faccessat2", _faccessat2(os.X_OK, AT_EACCESS), at=True, one_in=3),
    Row("faccessat2-nofollow", "faccessat2", _faccessat2(os.F_OK, AT_SYMLINK_NOFOLLOW), at=True, one_in=3),
    Row("faccessat2-empty", "faccessat2", _faccessat2(os.F_OK, AT_EMPTY_PATH), at=True, one_in=5),
    Row("readlink", "readlink", _readlink, one_in=3),
    Row("readlinkat", "readlinkat", _readlinkat(8192), at=True),
    Row("readlinkat-short", "readlinkat", _readlinkat(3), at=True, one_in=4),
    Row("readlinkat-no-room", "readlinkat", _readlinkat(0), at=True, one_in=20),
    Row("open", "open", _open, one_in=4),
    Row("openat", "openat", _openat(os.O_RDONLY), at=True),
    Row("openat-nofollow", "openat", _openat(os.O_NOFOLLOW), at=True),
    Row("openat-folder", "openat", _openat(os.O_DIRECTORY), at=True),
    Row("openat-folder-nofollow", "openat", _openat(os.O_DIRECTORY | os.O_NOFOLLOW), at=True, one_in=3),
    Row("openat-path", "openat", _openat(os.O_PATH), at=True),
    Row("openat-path-nofollow", "openat", _openat(os.O_PATH | os.O_NOFOLLOW), at=True, one_in=2),
    Row("openat-path-folder", "openat", _openat(os.O_PATH | os.O_DIRECTORY), at=True, one_in=4),
    Row("openat2", "openat2", _openat2(0, 0), at=True, refusal="ENOSYS", one_in=6),
    Row("openat2-no-links", "openat2", _openat2(os.O_PATH, RESOLVE_NO_SYMLINKS), at=True, refusal="ENOSYS", one_in=20),
    Row("openat2-beneath", "openat2", _openat2(os.O_PATH, RESOLVE_BENEATH), at=True, refusal="ENOSYS", one_in=20),
    Row("openat2-in-root", "openat2", _openat2(os.O_PATH, RESOLVE_IN_ROOT), at=True, refusal="ENOSYS", one_in=20),
    Row("open_tree", "open_tree", _open_tree, at=True, refusal="ENOSYS", one_in=6),
    Row("name_to_handle_at", "name_to_handle_at", _handle, at=True, refusal="ENOSYS", one_in=6),
    Row("statfs", "statfs", _statfs, one_in=2),
    Row("chdir", "chdir", _chdir),
    Row("list", "openat", _list, at=True, one_in=2),
    Row("getxattr", "getxattr", _attribute("getxattr")),
    Row("lgetxattr", "lgetxattr", _attribute("lgetxattr"), one_in=2),
    Row("listxattr", "listxattr", _attributes("listxattr"), one_in=4),
    Row("llistxattr", "llistxattr", _attributes("llistxattr"), one_in=4),
    Row("getxattrat", "getxattrat", _getxattrat, at=True, refusal="ENOSYS", one_in=6),
    Row("watch", "inotify_add_watch", _watch(0)),
    Row("watch-nofollow", "inotify_add_watch", _watch(IN_DONT_FOLLOW), one_in=2),
    Row("watch-folder", "inotify_add_watch", _watch(IN_ONLYDIR), one_in=3),
    Row("realpath", "newfstatat", _realpath, one_in=2),
)
NO_DIRECTORY = AT_FDCWD
