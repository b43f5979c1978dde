# SPDX-License-Identifier: GPL-3.0-or-later
"""What `verify` changes: one row per call and way to call it. The host sees what each did, and undoes it.

Two names take part in a rename or link; the other one is always the same file of the prepared tree, or a name beside it
that is free. Nothing here is ever tried on a path that could lead to the rootfs's own `/`, to procfs or to the guest.
"""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import struct

from verify_calls import (
    AT_FDCWD,
    AT_REMOVEDIR,
    AT_SYMLINK_FOLLOW,
    AT_SYMLINK_NOFOLLOW,
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    call,
    descriptor_text,
    shown,
)
from verify_reads import ATTRIBUTE, OpenHow, Row

TYPE_CHECKING = False  # the name that checkers know; importing typing would cost a start
if TYPE_CHECKING:
    from collections.abc import Callable

    Ask = Callable[[int, bytes], str]

# The other name of a rename or link.
FILE, FOLDER, FREE = b"/ordinary/file", b"/ordinary/folder", b"/ordinary/free"
MODE = 0o640
TARGET = b"../made/by/verify"
# Times that the host knows again: seconds, nanoseconds.
ACCESSED, MODIFIED = (1_111_111_111, 111), (1_222_222_222, 222)
OTHER_IDS = (12, 34) if os.getuid() == 0 else (os.getuid(), os.getgid())


def _legacy(name: str, *rest: int | bytes) -> Ask:
    return lambda _, path: str(call(name, path, *rest))


def _from_to(name: str, *, to: bytes | None = None, source: bytes = FILE) -> Ask:
    """Two names: the case's path first if `to` is given, else second."""
    if to is not None:
        return lambda _, path: str(call(name, path, to))
    return lambda _, path: str(call(name, source, path))


def _at(name: str, *rest: int | bytes) -> Ask:
    return lambda at, path: str(call(name, at, path, *rest))


def _at_to(name: str, *flags: int, source: bytes = FILE) -> Ask:
    return lambda at, path: str(call(name, AT_FDCWD, source, at, path, *flags))


def _at_from(name: str, *flags: int, to: bytes = FREE) -> Ask:
    return lambda at, path: str(call(name, at, path, AT_FDCWD, to, *flags))


def _written(descriptor: int) -> str:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.write(descriptor, b"written")
    return descriptor_text(descriptor)


def _creat(_: int, path: bytes) -> str:
    return _written(call("creat", path, MODE))


def _open(flags: int) -> Ask:
    return lambda at, path: _written(call("openat", at, path, flags | os.O_NONBLOCK | os.O_NOCTTY, MODE))


def _unnamed(at: int, path: bytes) -> str:
    """Make a file without a name and give it one through procfs, as openat(2) shows it."""
    opened = call("openat", at, path, os.O_TMPFILE | os.O_RDWR, MODE)
    try:
        return str(call("linkat", AT_FDCWD, b"/proc/self/fd/%d" % opened, AT_FDCWD, FREE, AT_SYMLINK_FOLLOW))
    finally:
        os.close(opened)


def _openat2(at: int, path: bytes) -> str:
    how = OpenHow(os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, MODE, 0)
    return _written(call("openat2", at, path, how, ctypes.sizeof(how)))


def _utime(_: int, path: bytes) -> str:
    return str(call("utime", path, struct.pack("qq", ACCESSED[0], MODIFIED[0])))


def _utimes(_: int, path: bytes) -> str:
    return str(call("utimes", path, struct.pack("qqqq", ACCESSED[0], 0, MODIFIED[0], 0)))


def _futimesat(at: int, path: bytes) -> str:
    return str(call("futimesat", at, path, struct.pack("qqqq", ACCESSED[0], 0, MODIFIED[0], 0)))


def _setxattrat(at: int, path: bytes) -> str:
    # struct xattr_args (linux/xattr.h): value, size, flags
    value = ctypes.create_string_buffer(b"changed")
    words = struct.pack("QII", ctypes.addressof(value), 7, 0)
    return str(call("setxattrat", at, path, 0, ATTRIBUTE, words, len(words)))


def _bind(_: int, path: bytes) -> str:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)
        # The kernel chooses a name for one that gives none.
        return _name(made.getsockname()) if path else "an abstract name"


def _name(address: str | bytes) -> str:
    return shown(os.fsencode(address))


def _bind_datagram(_: int, path: bytes) -> str:
    """Bind a receiver and a sender beside it; the receiver sees the sender's name."""
    kind = (socket.AF_UNIX, socket.SOCK_DGRAM)
    with socket.socket(*kind) as receiver, socket.socket(*kind) as sender:
        receiver.bind(path)
        sender.bind(FREE)
        sender.connect(path)
        sender.send(b"x")
        source = receiver.recvfrom(1)[1]
        return f"{_name(source)} {_name(sender.getpeername())}"


def _listen(_: int, path: bytes) -> str:
    """Bind, connect from a named socket, accept: what each says of both names."""
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen(1)
        client.bind(FREE)
        client.connect(path)
        accepted, name = server.accept()
        with accepted:
            return " ".join(map(_name, (name, accepted.getsockname(), accepted.getpeername(), client.getpeername())))


def _connect(_: int, path: bytes) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        return _name(client.getpeername())


_TIMES = struct.pack("qqqq", *ACCESSED, *MODIFIED)
_CREATE = os.O_WRONLY | os.O_CREAT

WRITES = (
    Row("creat", "creat", _creat, one_in=4),
    Row("mkdir", "mkdir", _legacy("mkdir", 0o750), one_in=8),
    Row("rmdir", "rmdir", _legacy("rmdir"), one_in=4),
    Row("unlink", "unlink", _legacy("unlink"), one_in=8),
    Row("rename-to", "rename", _from_to("rename"), one_in=2),
    Row("rename-from", "rename", _from_to("rename", to=FREE), one_in=2),
    Row("link-to", "link", _from_to("link"), one_in=8),
    Row("link-from", "link", _from_to("link", to=FREE), one_in=8),
    Row("symlink", "symlink", _from_to("symlink", source=TARGET), one_in=8),
    Row("chmod", "chmod", _legacy("chmod", 0o604), one_in=4),
    Row("chown", "chown", _legacy("chown", *OTHER_IDS), one_in=4),
    Row("lchown", "lchown", _legacy("lchown", *OTHER_IDS), one_in=8),
    Row("utime", "utime", _utime, one_in=8),
    Row("utimes", "utimes", _utimes, one_in=8),
    Row("mknod-fifo", "mknod", _legacy("mknod", stat.S_IFIFO | MODE, 0), one_in=8),
    Row("truncate", "truncate", _legacy("truncate", 3), one_in=4),
    Row("setxattr", "setxattr", _legacy("setxattr", ATTRIBUTE, b"changed", 7, 0), one_in=4),
    Row("lsetxattr", "lsetxattr", _legacy("lsetxattr", ATTRIBUTE, b"changed", 7, 0), one_in=4),
    Row("removexattr", "removexattr", _legacy("removexattr", ATTRIBUTE), one_in=8),
    Row("lremovexattr", "lremovexattr", _legacy("lremovexattr", ATTRIBUTE), one_in=8),
    Row("bind", "openat", _bind, one_in=2),
    Row("bind-datagram", "openat", _bind_datagram, one_in=8),
    Row("listen", "openat", _listen, one_in=4),
    Row("connect", "openat", _connect, one_in=4),
    Row("open-write", "openat", _open(os.O_WRONLY), at=True, one_in=4),
    Row("open-truncate", "openat", _open(os.O_RDWR | os.O_TRUNC), at=True, one_in=8),
    Row("open-append", "openat", _open(os.O_WRONLY | os.O_APPEND), at=True, one_in=8),
    Row("open-create", "openat", _open(_CREATE), at=True, one_in=2),
    Row("open-create-new", "openat", _open(_CREATE | os.O_EXCL), at=True, one_in=2),
    Row("open-create-nofollow", "openat", _open(_CREATE | os.O_NOFOLLOW), at=True, one_in=8),
    Row("open-create-folder", "openat", _open(os.O_CREAT | os.O_DIRECTORY), at=True, one_in=8),
    Row("open-create-read", "openat", _open(os.O_CREAT | os.O_RDWR | os.O_TRUNC), at=True, one_in=8),
    Row("open-unnamed", "openat", _unnamed, at=True, one_in=4),
    Row("openat2-create", "openat2", _openat2, at=True, refusal="ENOSYS", one_in=8),
    Row("mkdirat", "mkdirat", _at("mkdirat", 0o701), at=True, one_in=2),
    Row("unlinkat", "unlinkat", _at("unlinkat", 0), at=True, one_in=2),
    Row("unlinkat-folder", "unlinkat", _at("unlinkat", AT_REMOVEDIR), at=True, one_in=2),
    Row("renameat-folder-to", "renameat", _at_to("renameat", source=FOLDER), at=True, one_in=2),
    Row("renameat-from", "renameat", _at_from("renameat"), at=True, one_in=8),
    Row("renameat-into-itself", "renameat", _at_from("renameat", to=FOLDER + b"/inner/itself"), at=True, one_in=8),
    Row("renameat2-new-to", "renameat2", _at_to("renameat2", RENAME_NOREPLACE), at=True, one_in=4),
    Row("renameat2-new-from", "renameat2", _at_from("renameat2", RENAME_NOREPLACE), at=True, one_in=8),
    Row("renameat2-exchange", "renameat2", _at_to("renameat2", RENAME_EXCHANGE), at=True, one_in=2),
    Row("renameat2-exchange-folder", "renameat2", _at_from("renameat2", RENAME_EXCHANGE, to=FOLDER), at=True, one_in=8),
    Row("linkat-from", "linkat", _at_from("linkat", 0), at=True, one_in=2),
    Row("linkat-from-follow", "linkat", _at_from("linkat", AT_SYMLINK_FOLLOW), at=True, one_in=2),
    Row("linkat-to", "linkat", _at_to("linkat", 0), at=True, one_in=2),
    Row("symlinkat", "symlinkat", lambda at, path: str(call("symlinkat", TARGET, at, path)), at=True, one_in=2),
    Row("mknodat-file", "mknodat", _at("mknodat", stat.S_IFREG | MODE, 0), at=True, one_in=4),
    Row("fchmodat", "fchmodat", _at("fchmodat", 0o614), at=True, one_in=8),
    Row("fchmodat2", "fchmodat2", _at("fchmodat2", 0o624, 0), at=True, one_in=8),
    Row("fchmodat2-nofollow", "fchmodat2", _at("fchmodat2", 0o634, AT_SYMLINK_NOFOLLOW), at=True, one_in=8),
    Row("fchownat", "fchownat", _at("fchownat", *OTHER_IDS, 0), at=True, one_in=8),
    Row("fchownat-nofollow", "fchownat", _at("fchownat", *OTHER_IDS, AT_SYMLINK_NOFOLLOW), at=True, one_in=4),
    Row("utimensat", "utimensat", _at("utimensat", _TIMES, 0), at=True, one_in=4),
    Row("utimensat-nofollow", "utimensat", _at("utimensat", _TIMES, AT_SYMLINK_NOFOLLOW), at=True, one_in=4),
    Row("futimesat", "futimesat", _futimesat, at=True, one_in=8),
    Row("setxattrat", "setxattrat", _setxattrat, at=True, refusal="ENOSYS", one_in=8),
)
