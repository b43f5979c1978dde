# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking into a rootfs from outside as its own processes would: no link, loop or `..` of it leads out.

A rootfs may be hostile. Each component is looked at without following it, relative to a held directory, so a link is
only ever followed here, in guest terms; and a component that becomes a link meanwhile is an error, not a way out.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import deque
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, PlainValidator, WithJsonSchema

from droiddeck_session.errors import FilesError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

UNREACHABLE: Final = "a loop of links or a file is in its way"
# linux/namei.h: MAXSYMLINKS; the kernel gives up with ELOOP after as many.
LINK_LIMIT: Final = 40

_HOLD: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# A path as the kernel has it: str with surrogateescape, which pydantic's own str refuses.
PathText = Annotated[str, PlainValidator(str), WithJsonSchema({"type": "string"})]


class GuestPath(BaseModel):
    """One path of the rootfs, looked up in guest terms: no link leads out of the rootfs.

    Attributes:
        kind: what the rootfs has there, after links; `missing` also where the caller may not look, `unreachable` what
            nothing can be made at: behind a loop of links, or below a file.
        resolved: the guest path with the guest's links resolved, as far as it exists.
        executable: a regular file with an execute bit; of a folder: that the caller may enter it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["directory", "file", "other", "missing", "unreachable"]
    resolved: PathText
    executable: bool = False


def look_up(root: str, guest_path: str) -> GuestPath:
    """Return what the rootfs has at a guest path, following its links as a process inside would.

    Args:
        root: host path of the rootfs.
        guest_path: absolute guest path.

    Raises:
        FilesError: the rootfs itself cannot be opened.
    """
    with _held_root(root) as root_fd:
        return _walk(root_fd, guest_path)


def read_file(root: str, guest_path: str, *, limit: int) -> bytes | None:
    """Return the beginning of a regular file of the rootfs, or None if there is none that the caller may read.

    Args:
        root: host path of the rootfs.
        guest_path: absolute guest path; links are followed in guest terms.
        limit: the most bytes that are read.

    Raises:
        FilesError: the rootfs itself cannot be opened.
    """
    found = look_up(root, guest_path)
    if found.kind != "file":
        return None
    *parents, name = _parts(found.resolved)
    try:
        with _held_root(root) as root_fd, _held(root_fd, parents) as parent:
            # O_NONBLOCK: what became a fifo since it was looked at must not hold us up.
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
            with os.fdopen(descriptor, "rb") as stream:
                return stream.read(limit)
    except OSError:
        return None


def make_mount_point(root: str, guest_path: str, *, directory: bool) -> None:
    """Make an empty file or folder inside the rootfs, with the parents it lacks; one that is there already is fine.

    Args:
        root: host path of the rootfs.
        guest_path: absolute guest path; links are followed in guest terms, a dangling one to where it points.
        directory: whether a folder is wanted.

    Raises:
        FilesError: it cannot be made, or something of another kind is there.
    """
    found = look_up(root, guest_path)
    if found.kind == "unreachable":
        raise _not_made(guest_path, UNREACHABLE)
    if found.kind != "missing":
        if (found.kind == "directory") is not directory:
            raise _not_made(guest_path, f"a {'file' if directory else 'folder'} is there")
        return
    *parents, name = _parts(found.resolved)
    with _held_root(root) as root_fd:
        try:
            with _held(root_fd, parents, make=True) as parent:
                _make_entry(parent, name, directory=directory)
        except OSError as error:
            raise _not_made(guest_path, os.strerror(error.errno or errno.EIO)) from error


def _walk(root_fd: int, guest_path: str) -> GuestPath:
    pending = deque(_parts(guest_path))
    reached: list[str] = []
    links = 0
    current = os.dup(root_fd)
    try:
        while pending:
            name = pending.popleft()
            try:
                if name == "..":
                    del reached[-1:]
                    current = _replace(current, root_fd, reached)
                    continue
                found = os.stat(name, dir_fd=current, follow_symlinks=False)
                if stat.S_ISLNK(found.st_mode):
                    links += 1
                    if links > LINK_LIMIT:
                        return GuestPath(kind="unreachable", resolved=_lexical(guest_path))
                    target = os.readlink(name, dir_fd=current)
                    pending.extendleft(reversed(_parts(target)))
                    if target.startswith("/"):
                        reached = []
                        current = _replace(current, root_fd, reached)
                    continue
                if not stat.S_ISDIR(found.st_mode):
                    return _not_a_folder(found.st_mode, reached, name, pending)
                current = _enter(current, name)
                reached.append(name)
            except OSError:
                # Not there, not to be looked at, or changed since: the rest is only a name.
                return GuestPath(kind="missing", resolved=_lexical("/".join([*reached, name, *pending])))
        enterable = os.access(".", os.X_OK, dir_fd=current)
    finally:
        os.close(current)
    return GuestPath(kind="directory", resolved=_absolute(reached), executable=enterable)


def _not_a_folder(mode: int, reached: Sequence[str], name: str, pending: deque[str]) -> GuestPath:
    if pending:
        # ENOTDIR to the kernel.
        return GuestPath(kind="unreachable", resolved=_lexical("/".join([*reached, name, *pending])))
    regular = stat.S_ISREG(mode)
    return GuestPath(
        kind="file" if regular else "other",
        resolved=_absolute([*reached, name]),
        executable=regular and bool(mode & 0o111),
    )


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _absolute(parts: Sequence[str]) -> str:
    return "/" + "/".join(parts)


def _lexical(path: str) -> str:
    parts: list[str] = []
    for part in _parts(path):
        if part == "..":
            del parts[-1:]
        else:
            parts.append(part)
    return _absolute(parts)


def _enter(current: int, name: str) -> int:
    following = os.open(name, _HOLD, dir_fd=current)
    os.close(current)
    return following


def _replace(current: int, root_fd: int, parts: Sequence[str]) -> int:
    """Return a descriptor for these components below the root in place of `current`, which is closed."""
    with _held(root_fd, parts) as held:
        following = os.dup(held)
    os.close(current)
    return following


@contextlib.contextmanager
def _held_root(root: str) -> Iterator[int]:
    try:
        descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise FilesError(
            code="ROOTFS_UNREADABLE",
            message=f"rootfs {root!r} cannot be opened: {os.strerror(error.errno or errno.EIO)}",
            hint="see `droiddeck-session guest list` for the guests that there are",
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _held(root_fd: int, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """Hold the folder of these components below the root, none of which may be a link; with `make`, make what lacks."""
    current = os.dup(root_fd)
    try:
        for name in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=current)
            current = _enter(current, name)
        yield current
    finally:
        os.close(current)


def _make_entry(parent: int, name: str, *, directory: bool) -> None:
    # Another session may have made it since it was looked for.
    with contextlib.suppress(FileExistsError):
        if directory:
            os.mkdir(name, 0o755, dir_fd=parent)
        else:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=parent))
    made = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISDIR(made.st_mode) is not directory or stat.S_ISLNK(made.st_mode):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _not_made(guest_path: str, why: str) -> FilesError:
    return FilesError(
        code="MOUNT_POINT",
        message=f"mount point {guest_path!r} cannot be made in the rootfs: {why}",
        hint="make it in the rootfs once, bind somewhere else, or use a backend that needs none: --backend proot",
    )
