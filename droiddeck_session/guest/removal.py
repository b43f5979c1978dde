# SPDX-License-Identifier: GPL-3.0-or-later
"""Removing a tree that a guest has written: no link is followed, no mount is entered, no permission bit stops it.

The walk holds a descriptor of each folder it is in and names entries relative to it, so nothing that is renamed or
replaced meanwhile can lead it elsewhere. Another mount is told by its `mnt_id` (proc(5), fdinfo), which differs for a
bind mount of the same file system too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shlex
import stat
from pathlib import Path
from typing import Final

from droiddeck_session import processes
from droiddeck_session.errors import FilesError
from droiddeck_session.guest.namespaces import USER_NAMESPACE

# Folders below this depth are moved up first: neither descriptors nor Python's stack may run out on a deep tree.
_DEEPEST: Final = 64
_REMOVAL_TIME_LIMIT: Final = 600.0
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def mounts_below(path: str) -> tuple[str, ...]:
    """Return the mount points of this process's namespace at or below a path, as proc(5) lists them."""
    top = os.path.realpath(path)
    points = []
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        escaped = line.split(b" ")[4]
        point = os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), escaped))
        if point == top or point.startswith(top.rstrip("/") + "/"):
            points.append(point)
    return tuple(points)


def refuse_mounts(path: str) -> None:
    """Refuse a tree that something is mounted in.

    Raises:
        FilesError: MOUNT_INSIDE; names the mount point.
    """
    points = mounts_below(path)
    if points:
        raise _mount_inside(points[0])


def remove_tree(path: str) -> None:
    """Remove a folder and all that is in it.

    Without root, what subordinate ids own is removed in a user namespace: a killed `guest create` leaves such files.

    Raises:
        FilesError: MOUNT_INSIDE or NOT_REMOVED; names what is in the way.
    """
    try:
        _remove(path)
    except FileNotFoundError:
        return
    except PermissionError as error:
        if os.geteuid() != 0:
            refuse_mounts(path)
            argv = (*USER_NAMESPACE, "rm", "-rf", "--one-file-system", "--", path)
            with contextlib.suppress(processes.ProcessError):
                processes.run(argv, time_limit=_REMOVAL_TIME_LIMIT)
        if os.path.lexists(path):
            raise _not_removed(path, error) from error
    except OSError as error:
        raise _not_removed(path, error) from error


def _remove(path: str) -> None:
    parent, name = os.path.split(path)
    above = os.open(parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        top = _open_folder(name, above)
        try:
            mount = _mount_of(top)
            while os.listdir(top):  # noqa: PTH208 - of a descriptor
                _empty(top, top=top, mount=mount, depth=0)
        finally:
            os.close(top)
        os.rmdir(name, dir_fd=above)
    finally:
        os.close(above)


def _empty(folder: int, *, top: int, mount: str, depth: int) -> None:
    """Remove the entries of an open folder; a folder that lies too deep is moved to `top` instead."""
    with os.scandir(folder) as entries:
        listing = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listing:
        if not is_folder:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            continue
        inner = _open_folder(name, folder)
        try:
            if _mount_of(inner) != mount:
                raise _mount_inside(_path_of(inner))
            if depth < _DEEPEST:
                _empty(inner, top=top, mount=mount, depth=depth + 1)
                os.rmdir(name, dir_fd=folder)
            else:
                os.rename(name, f".{secrets.token_hex(16)}", src_dir_fd=folder, dst_dir_fd=top)
        finally:
            os.close(inner)


def _open_folder(name: str, above: int) -> int:
    """Open a folder that is no link, after giving its owner all rights to it."""
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            # chmod(2) takes no O_PATH descriptor, and by name it would follow a link put there meanwhile.
            os.chmod(f"/proc/self/fd/{handle}", mode | stat.S_IRWXU)  # noqa: PTH101 - a magic link, not a path
        return os.open(".", _FOLDER, dir_fd=handle)
    finally:
        os.close(handle)


def _mount_of(folder: int) -> str:
    for line in Path(f"/proc/self/fdinfo/{folder}").read_text(encoding="ascii").splitlines():
        if line.startswith("mnt_id:"):
            return line
    raise OSError(errno.ENOSYS, "the kernel does not tell which mount a descriptor is of")


def _path_of(folder: int) -> str:
    return os.fspath(Path(f"/proc/self/fd/{folder}").readlink())


def _mount_inside(point: str) -> FilesError:
    return FilesError(
        code="MOUNT_INSIDE",
        message=f"something is mounted at {point!r}; it is not removed",
        hint=f"umount {shlex.quote(point)}, then try again",
    )


def _not_removed(path: str, error: OSError) -> FilesError:
    return FilesError(
        code="NOT_REMOVED",
        message=f"cannot remove {path!r}: {error.strerror}" + (f" ({error.filename!r})" if error.filename else ""),
        hint=f"as root: rm -r --one-file-system -- {shlex.quote(path)}",
    )
