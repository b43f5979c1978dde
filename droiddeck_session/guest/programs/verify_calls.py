# SPDX-License-Identifier: GPL-3.0-or-later
"""System calls by number, as `verify` makes them: no C library between the question and the kernel or tracer.

Answers are texts. What must differ between two runs is marked where it is known and settled on the host: `<file DEVICE
INODE>` becomes the file's name in the prepared tree, `<time NANOSECONDS>` says whether a time is one that was set.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import stat
import struct

TYPE_CHECKING = False  # the name that checkers know; importing typing would cost a start
if TYPE_CHECKING:
    from typing import Any

# linux/fcntl.h
AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW = 0x100
AT_EACCESS = 0x200
AT_REMOVEDIR = 0x200
AT_SYMLINK_FOLLOW = 0x400
AT_EMPTY_PATH = 0x1000
# linux/fs.h
RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2
# linux/stat.h
STATX_BASIC_STATS = 0x7FF
# linux/inotify.h
IN_ALL_EVENTS = 0xFFF
IN_ONLYDIR = 0x01000000
IN_DONT_FOLLOW = 0x02000000

# asm/unistd_64.h of x86, asm-generic/unistd.h; calls from 424 on have one number everywhere.
_EVERYWHERE = {
    "open_tree": 428, "openat2": 437, "faccessat2": 439, "fchmodat2": 452, "setxattrat": 463, "getxattrat": 464,
    "listxattrat": 465, "removexattrat": 466, "file_getattr": 468,
}  # fmt: skip
_NUMBERS = {
    "x86_64": {
        "open": 2, "stat": 4, "lstat": 6, "access": 21, "truncate": 76, "getcwd": 79, "chdir": 80, "rename": 82,
        "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88, "readlink": 89, "chmod": 90,
        "chown": 92, "lchown": 94, "utime": 132, "mknod": 133, "statfs": 137, "chroot": 161, "setxattr": 188,
        "lsetxattr": 189, "getxattr": 191, "lgetxattr": 192, "listxattr": 194, "llistxattr": 195, "removexattr": 197,
        "lremovexattr": 198, "utimes": 235, "inotify_add_watch": 254, "openat": 257, "mkdirat": 258, "mknodat": 259,
        "fchownat": 260, "futimesat": 261, "newfstatat": 262, "unlinkat": 263, "renameat": 264, "linkat": 265,
        "symlinkat": 266, "readlinkat": 267, "fchmodat": 268, "faccessat": 269, "utimensat": 280,
        "name_to_handle_at": 303, "renameat2": 316, "execveat": 322, "statx": 332,
    },
    "aarch64": {
        "setxattr": 5, "lsetxattr": 6, "getxattr": 8, "lgetxattr": 9, "listxattr": 11, "llistxattr": 12,
        "removexattr": 14, "lremovexattr": 15, "getcwd": 17, "inotify_add_watch": 27, "mknodat": 33, "mkdirat": 34,
        "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "statfs": 43, "truncate": 45, "faccessat": 48,
        "chdir": 49, "chroot": 51, "fchmodat": 53, "fchownat": 54, "openat": 56, "readlinkat": 78, "newfstatat": 79,
        "utimensat": 88, "name_to_handle_at": 264, "renameat2": 276, "execveat": 281, "statx": 291,
    },
}  # fmt: skip
MACHINE = platform.machine()
NUMBERS = {**_NUMBERS[MACHINE], **_EVERYWHERE}

_BUFFER = 32768
_KINDS = {
    stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device", stat.S_IFBLK: "block",
}  # fmt: skip
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_UID, _GID = os.getuid(), os.getgid()
_PROC_DEVICE = os.stat("/proc").st_dev


def call(name: str, *arguments: int | bytes | ctypes.Array[Any] | ctypes.Structure | None) -> int:
    """Make a system call by its number.

    Raises:
        OSError: it failed.
    """
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result = int(_libc.syscall(ctypes.c_long(NUMBERS[name]), *words))
    if result == -1:
        raise OSError(ctypes.get_errno(), name)
    return result


def buffer(size: int = _BUFFER) -> ctypes.Array[Any]:
    """Return memory that a call fills."""
    return ctypes.create_string_buffer(size)


def error_name(error: OSError) -> str:
    """Return an error by its name in errno.h."""
    return errno.errorcode.get(error.errno or 0, str(error.errno))


def shown(path: bytes) -> str:
    """Return bytes as a text of one line; the number of this process is left out where it names it."""
    text = repr(path)[1:]
    for number, name in ((os.getpid(), "<pid>"), (_thread(), "<tid>")):
        text = text.replace(f"/proc/{number}", f"/proc/{name}").replace(f"task/{number}", "task/<tid>")
        text = text.replace(f"'{number}/", f"'{name}/")
        text = f"'{name}'" if text == f"'{number}'" else text
    if text.strip("'").isdecimal():  # the beginning of a process's number, where there was no room for all of it
        return "'<number>'"
    kind, _, rest = text.partition(":[")  # pipe:[12345]
    return f"{kind}:[...]'" if rest else text


def _thread() -> int:
    import threading  # noqa: PLC0415 - few cases need it

    return threading.get_native_id()


def owner(uid: int, gid: int) -> str:
    """Return the ids; for a user without rights only whether they are its own: a namespace shows others as nobody."""
    if _UID == 0:
        return f"{uid}:{gid}"
    return f"{'own' if uid == _UID else 'other'}:{'own' if gid == _GID else 'other'}"


def kind_of(mode: int) -> str:
    """Return the type of a file in one word."""
    return _KINDS.get(stat.S_IFMT(mode), "nothing")


def described(  # noqa: PLR0917 - the fields of one struct
    device: int, inode: int, mode: int, links: int, uid: int, gid: int, rdev: int, size: int, block: int, time: int
) -> str:
    """Return what a stat call says of a file; processes come and go, so procfs has no number of links."""
    counted = "-" if device == _PROC_DEVICE else str(links)
    return (
        f"{kind_of(mode)} {stat.S_IMODE(mode):04o} {owner(uid, gid)} links {counted} size {size} block {block} "
        f"rdev {rdev} <file {device} {inode}> <time {time}>"
    )


def stat_text(filled: ctypes.Array[Any]) -> str:
    """Return what a filled `struct stat` (asm/stat.h) says."""
    if MACHINE == "x86_64":
        device, inode, links, mode, uid, gid, rdev, size, block, _, _, _, seconds, rest = struct.unpack_from(
            "QQQIII4xQqqqQQQQ", filled
        )
    else:
        device, inode, mode, links, uid, gid, rdev, size, block, _, _, _, seconds, rest = struct.unpack_from(
            "QQIIIIQ8xqi4xqQQQQ", filled
        )
    return described(device, inode, mode, links, uid, gid, rdev, size, block, seconds * 10**9 + rest)


def statx_text(filled: ctypes.Array[Any]) -> str:
    """Return what a filled `struct statx` (linux/stat.h) says, with its attributes, mount root among them."""
    mask, block, attributes, links, uid, gid, mode, inode, size, _, known = struct.unpack_from("IIQIIIH2xQQQQ", filled)
    seconds, rest = struct.unpack_from("qI", filled, 0x70)
    rdev_major, rdev_minor, major, minor = struct.unpack_from("IIII", filled, 0x80)
    device, rdev = os.makedev(major, minor), os.makedev(rdev_major, rdev_minor)
    text = described(device, inode, mode, links, uid, gid, rdev, size, block, seconds * 10**9 + rest)
    return f"{text} mask {mask:x} attributes {attributes & known:x} of {known:x}"


def descriptor_text(descriptor: int) -> str:
    """Return what an open descriptor is, says of its own name, and holds; closes it."""
    try:
        filled = os.fstat(descriptor)
        text = f"{descriptor} {kind_of(filled.st_mode)} <file {filled.st_dev} {filled.st_ino}>"
        text += f" flags {_status_flags(descriptor):x} is {shown(os.readlink(b'/proc/self/fd/%d' % descriptor))}"
        # What procfs says is of this moment and this process.
        if stat.S_ISREG(filled.st_mode) and filled.st_dev != _PROC_DEVICE:
            text += f" holds {_content(descriptor)}"
        return text
    finally:
        os.close(descriptor)


def _status_flags(descriptor: int) -> int:
    import fcntl  # noqa: PLC0415 - used here alone

    return fcntl.fcntl(descriptor, fcntl.F_GETFL)


def _content(descriptor: int) -> str:
    try:
        return shown(os.pread(descriptor, 16, 0))
    except OSError as error:
        return error_name(error)
