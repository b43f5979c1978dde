# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of `verify` that take more than one call: changes seen by the next call, depth, threads, names of sockets."""

from __future__ import annotations

import os
import socket
import struct
import threading

from verify_calls import AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_FOLLOW, buffer, call, error_name, shown
from verify_exec import EXECUTIONS, in_child
from verify_paths import REMOVED

TYPE_CHECKING = False  # the name that checkers know; importing typing would cost a start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Not compared by the host, so that nothing of it need be undone but its being empty.
SCRATCH = "/scratch"
_LEVELS, _NAME = 20, "d" * 250
# sun_path holds 108 bytes with its NUL (linux/un.h)
_LONGEST_SOCKET_NAME = 107
_EVENT_HEADER = struct.calcsize("iIII")
# linux/inotify.h
IN_CREATE = 0x100
IN_DELETE_SELF = 0x400


class Special:
    """One case.

    Args:
        name: what is tried; ids begin with it.
        label: with what.
        path_class: a class of its own.
        ask: tries it.
    """

    def __init__(self, name: str, label: str, path_class: str, ask: Callable[[], str], *, refusal: str = "") -> None:
        self.name, self.label, self.path_class, self.ask, self.refusal = name, label, path_class, ask, refusal


def _tried(step: Callable[[], object]) -> str:
    try:
        found = step()
    except OSError as error:
        return error_name(error)
    if isinstance(found, os.stat_result):
        return f"<file {found.st_dev} {found.st_ino}>"
    return shown(os.fsencode(found)) if isinstance(found, (str, bytes)) else str(found)


def _all(*steps: Callable[[], object]) -> str:
    """Take steps in order; each one's result or error is part of the answer."""
    return " | ".join(_tried(step) for step in steps)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def _raw_getcwd(size: int) -> str:
    where = buffer(max(size, 1))
    length = call("getcwd", where, size)
    return shown(where.raw[:length])


def _getcwd(place: str) -> str:
    os.chdir(place)
    length = len(place) + 1
    return _all(*(lambda size=size: _raw_getcwd(size) for size in (0, 1, length - 1, length, length + 1, 8192)))


def _renamed_under_cwd() -> str:
    os.chdir("/ordinary/folder/inner")
    os.rename("/ordinary/folder", "/ordinary/free")
    return _all(
        os.getcwd, lambda: os.readlink("/proc/self/cwd"), lambda: os.stat("leaf"), lambda: os.stat("../inner/leaf"),
        lambda: os.stat("/ordinary/folder"), lambda: _write("made", "x"), lambda: os.listdir("."),
        lambda: os.rename("leaf", "../leaf"),
    )  # fmt: skip


def _removed_cwd() -> str:
    os.mkdir(f"{SCRATCH}/gone")
    os.chdir(f"{SCRATCH}/gone")
    os.rmdir(f"{SCRATCH}/gone")
    return _all(
        os.getcwd, lambda: os.readlink("/proc/self/cwd"), lambda: os.listdir("."), lambda: _write("made", "x"),
        lambda: os.mkdir("made"), lambda: os.stat("..").st_nlink, lambda: os.stat("../removed"),
        lambda: os.stat("/proc/self/cwd").st_nlink, lambda: os.open("/proc/self/cwd/x", os.O_CREAT | os.O_RDWR),
        lambda: os.chdir("."), lambda: os.chdir(".."), os.getcwd,
    )  # fmt: skip


def _removed_file() -> str:
    path = f"/proc/self/fd/{REMOVED}"
    return _all(
        lambda: os.readlink(path), lambda: os.stat(path).st_nlink, lambda: _read(path), lambda: os.truncate(path, 3),
        lambda: _read(path), lambda: os.chmod(path, 0o600), lambda: os.fstat(REMOVED).st_mode,
        lambda: call("linkat", AT_FDCWD, path.encode(), AT_FDCWD, b"/scratch/again", AT_SYMLINK_FOLLOW),
        lambda: call("linkat", REMOVED, b"", AT_FDCWD, b"/scratch/again", AT_EMPTY_PATH),
        lambda: os.chmod(path, 0o644), lambda: _write(path, "removed"),
    )  # fmt: skip


def _deep() -> str:
    """Walk down until no path of the kernel's length leads there, work there, and come up again."""
    os.chdir(SCRATCH)
    for _ in range(_LEVELS):
        os.mkdir(_NAME)
        os.chdir(_NAME)
    answer = _all(
        lambda: _write("file", "deep"), lambda: _read("file"), lambda: _read("./../" + _NAME + "/file"),
        lambda: os.stat("file").st_size, lambda: _raw_getcwd(32768), lambda: os.readlink("/proc/self/cwd"),
        lambda: _read("/proc/self/cwd/file"), lambda: os.symlink("file", "link"), lambda: _read("link"),
        lambda: os.mkdir("sub"), lambda: os.rename("file", "sub/file"), lambda: _read("sub/file"),
        lambda: os.listdir("."), lambda: os.chdir("sub"), lambda: _read("file"), lambda: os.unlink("file"),
        lambda: os.chdir(".."), lambda: os.rmdir("sub"), lambda: os.unlink("link"), lambda: os.stat("../" * 30),
    )  # fmt: skip
    for _ in range(_LEVELS):
        os.chdir("..")
        os.rmdir(_NAME)
    return f"{answer} | {_tried(os.getcwd)}"


def _folder_renamed() -> str:
    first, second = f"{SCRATCH}/a", f"{SCRATCH}/b"
    answer = _all(
        lambda: os.mkdir(first), lambda: _write(f"{first}/f", "1"), lambda: _read(f"{first}/f"),
        lambda: os.rename(first, second), lambda: _read(f"{first}/f"), lambda: _read(f"{second}/f"),
        lambda: os.mkdir(first), lambda: _write(f"{first}/f", "2"), lambda: _read(f"{first}/f"),
        lambda: call("renameat2", AT_FDCWD, first.encode(), AT_FDCWD, second.encode(), 2), lambda: _read(f"{first}/f"),
        lambda: _read(f"{second}/f"),
    )  # fmt: skip
    return _cleaned(answer)


def _link_changed() -> str:
    first, second, link = (f"{SCRATCH}/{name}" for name in ("a", "b", "l"))
    answer = _all(
        lambda: os.mkdir(first), lambda: os.mkdir(second), lambda: _write(f"{first}/f", "1"),
        lambda: _write(f"{second}/f", "2"), lambda: os.symlink("a", link), lambda: _read(f"{link}/f"),
        lambda: os.unlink(link), lambda: _read(f"{link}/f"), lambda: os.symlink(second, link),
        lambda: _read(f"{link}/f"), lambda: os.symlink("a", link + "2"), lambda: os.rename(link + "2", link),
        lambda: _read(f"{link}/f"), lambda: os.unlink(link), lambda: os.mkdir(link), lambda: _read(f"{link}/f"),
        lambda: os.rmdir(link), lambda: _write(link, "x"), lambda: _read(f"{link}/f"),
    )  # fmt: skip
    return _cleaned(answer)


def _changed_by_child() -> str:
    first, second = f"{SCRATCH}/a", f"{SCRATCH}/b"

    def swap() -> int:
        os.rename(first, second)
        os.symlink("/ordinary", first)
        return 0

    answer = _all(
        lambda: os.mkdir(first), lambda: _write(f"{first}/file", "1"), lambda: _read(f"{first}/file"),
        lambda: in_child(swap), lambda: _read(f"{first}/file"), lambda: _read(f"{second}/file"),
    )  # fmt: skip
    return _cleaned(answer)


def _cleaned(answer: str) -> str:
    """Empty the scratch folder, and tell what was left in it."""
    left = []
    for folder, folders, files in os.walk(SCRATCH, topdown=False):
        for name in files + [name for name in folders if os.path.islink(os.path.join(folder, name))]:
            os.unlink(os.path.join(folder, name))
            left.append(name)
        for name in folders:
            if os.path.isdir(os.path.join(folder, name)):
                os.rmdir(os.path.join(folder, name))
                left.append(name)
    return f"{answer} | left {' '.join(sorted(left))}"


def _in_thread(steps: Iterable[Callable[[], object]]) -> str:
    answers: list[str] = []
    worker = threading.Thread(target=lambda: answers.append(_all(*steps)))
    worker.start()
    worker.join()
    return "".join(answers)


def _thread() -> str:
    steps = (
        lambda: os.readlink("/proc/thread-self"),
        lambda: os.readlink("/proc/self"),
        lambda: os.readlink("/proc/thread-self/cwd"),
        lambda: os.readlink("/proc/thread-self/exe"),
        lambda: os.readlink("/proc/thread-self/root"),
        lambda: os.readlink("/proc/thread-self/fd/104"),
        lambda: os.stat("/proc/thread-self/fd/104"),
        lambda: _read("/proc/thread-self/cwd/file"),
        lambda: _read(f"/proc/self/task/{threading.get_native_id()}/cwd/file"),
        lambda: os.chdir("/bound/sub"),
        lambda: _read("leaf"),
    )
    return _in_thread(steps) + _all(os.getcwd)


def _long_socket_name() -> str:
    path = f"{SCRATCH}/".ljust(_LONGEST_SOCKET_NAME, "s")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:

        def accepted() -> object:
            return server.accept()[0].getsockname()

        answer = _all(
            lambda: server.bind(path), lambda: server.listen(1), lambda: client.connect(path), client.getpeername,
            accepted, lambda: os.stat(path).st_mode, lambda: server.bind(path),
        )  # fmt: skip
    return _cleaned(answer)


def _sent_by_name() -> str:
    path = f"{SCRATCH}/receiver"
    kind = (socket.AF_UNIX, socket.SOCK_DGRAM)
    with socket.socket(*kind) as receiver, socket.socket(*kind) as sender:
        receiver.settimeout(1)
        os.chdir(SCRATCH)
        answer = _all(
            lambda: receiver.bind(path), lambda: sender.sendto(b"1", path), lambda: receiver.recvfrom(9),
            lambda: sender.sendmsg([b"22"], [], 0, path), lambda: receiver.recvmsg(9)[0],
            lambda: sender.sendto(b"3", "receiver"), lambda: receiver.recv(9),
            lambda: sender.sendmsg([b"44"], [], 0, "receiver"), lambda: receiver.recv(9),
            lambda: sender.sendto(b"5", "/links/receiver"), lambda: sender.bind("sender"),
            lambda: sender.sendto(b"6", path), lambda: receiver.recvfrom(9), lambda: receiver.recvmsg(0)[3],
        )  # fmt: skip
    return _cleaned(answer)


def _without_name() -> str:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        name = f"\0droiddeck-verify-{os.getpid()}"
        return _all(
            server.getsockname, lambda: server.bind(name), lambda: server.getsockname() == os.fsencode(name),
            lambda: server.listen(1), lambda: client.connect(name), client.getsockname,
        )  # fmt: skip


def _event() -> str:
    """A watch of a folder tells the name of what is made in it, also through a link to the folder."""
    import ctypes  # noqa: PLC0415 - used here alone

    opened = ctypes.CDLL(None).inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        call("inotify_add_watch", opened, b"/links/scratch", IN_CREATE)
        _write(f"{SCRATCH}/made", "")
        event = os.read(opened, 4096)
    finally:
        os.close(opened)
    return _cleaned(shown(event[_EVENT_HEADER:].rstrip(b"\0")))


def _watched_and_removed() -> str:
    """The watch of a folder that is no more tells so: nobody else may hold the folder open, and so keep it."""
    import ctypes  # noqa: PLC0415 - used here and above

    folder, renamed = f"{SCRATCH}/a", f"{SCRATCH}/b"
    for made in (folder, f"{folder}/below", f"{folder}/below/deeper"):
        os.mkdir(made)
    opened = ctypes.CDLL(None).inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        for watched in (folder, f"{folder}/below", f"{folder}/below/deeper"):
            call("inotify_add_watch", opened, watched.encode(), IN_DELETE_SELF)
            _tried(lambda watched=watched: os.stat(f"{watched}/absent"))  # type: ignore[misc]
        os.rmdir(f"{folder}/below/deeper")
        os.rename(folder, renamed)
        os.rmdir(f"{renamed}/below")
        os.rmdir(renamed)
        events = os.read(opened, 4096)
    finally:
        os.close(opened)
    told = [struct.unpack_from("iI", events, at) for at in range(0, len(events), _EVENT_HEADER)]
    return _cleaned(" ".join(f"{watch}:{what:x}" for watch, what in told))


def _chroot(path: bytes) -> Callable[[], str]:
    """Enter another root; a tracer that has one root only may refuse, and then nothing has changed."""

    def steps() -> str:
        entered = _tried(lambda: call("chroot", path))
        if entered == "EPERM" and os.getuid() == 0:
            return _tried(lambda: os.stat("/ordinary/file").st_size and "ENOSYS").strip("'")
        return f"{entered} | " + _all(lambda: os.stat("/ordinary/file"), lambda: os.stat("/file"), os.getcwd)

    return lambda: in_child(steps).strip("'")


def _glued() -> str:
    """Descriptors of one folder and paths of another in one call."""
    here, there = os.open("/ordinary", os.O_PATH), os.open("/bound", os.O_PATH)
    try:
        return _all(
            lambda: os.rename("file", "file", src_dir_fd=here, dst_dir_fd=there),
            lambda: os.link("file", "linked", src_dir_fd=here, dst_dir_fd=there),
            lambda: os.rename("sub/leaf", "moved", src_dir_fd=there, dst_dir_fd=there),
            lambda: os.rename("nested", "moved-2", src_dir_fd=there, dst_dir_fd=there),
            lambda: os.rename("nested/file", "moved-3", src_dir_fd=there, dst_dir_fd=there),
            lambda: os.symlink("x", "sub/new", dir_fd=there), lambda: os.readlink("sub/new", dir_fd=there),
        )  # fmt: skip
    finally:
        os.close(here)
        os.close(there)


SPECIAL = (
    *(Special("getcwd", place, "getcwd", lambda place=place: _getcwd(place))  # type: ignore[misc]
      for place in ("/", "/ordinary", "/bound", "/bound/sub", "/bound/nested", "/deep/mount/point", "/deep/mount")),
    Special("cwd", "renamed", "cwd", _renamed_under_cwd),
    Special("cwd", "removed", "cwd", _removed_cwd),
    Special("file", "removed", "proc", _removed_file),
    Special("folder", "beyond PATH_MAX", "length", _deep),
    Special("folder", "renamed", "changes", _folder_renamed),
    Special("link", "changed", "changes", _link_changed),
    Special("folder", "changed by a child", "changes", _changed_by_child),
    Special("two descriptors", "rename and link", "mount", _glued),
    Special("thread", "thread-self", "proc", _thread),
    Special("socket", "longest name", "socket", _long_socket_name),
    Special("socket", "sent by name", "socket", _sent_by_name),
    Special("socket", "without name", "socket", _without_name),
    Special("inotify", "event", "changes", _event),
    Special("inotify", "removed", "changes", _watched_and_removed),
    *(Special("chroot", path, "chroot", _chroot(path.encode()), refusal="ENOSYS")
      for path in ("/", "/.", "/ordinary", "/bound", "/absent")),
    *(Special("exec", label, "exec", ask) for label, ask in EXECUTIONS),
)  # fmt: skip
