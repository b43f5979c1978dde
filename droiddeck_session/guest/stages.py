# SPDX-License-Identifier: GPL-3.0-or-later
"""New guests: made in a stage folder beside the others, then renamed into place whole.

A stage and a guest on its way out (`.stage-NAME-...`, `.trash-NAME-...`) are locked by whoever works on them, with
flock(2) on the folder itself; the kernel drops the lock when that process ends, however it ends. So a folder of such a
name that is not locked is a leftover, and the next `guest create`, `import` or `remove` clears it away.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from droiddeck_session.errors import DroiddeckError, FilesError
from droiddeck_session.guest.removal import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_UNFINISHED: Final = re.compile(r"\.(stage|trash)-(.+)-[0-9a-f]{16}")
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A guest that is being made.

    Attributes:
        name: of the guest that it will be.
        folder: host path; holds `rootfs/` and `scratch/`.
    """

    name: str
    folder: Path

    @property
    def rootfs(self) -> Path:
        """The rootfs being made."""
        return self.folder / "rootfs"

    @property
    def scratch(self) -> Path:
        """Temporary files of the tools; gone before the guest is there."""
        return self.folder / "scratch"


@contextlib.contextmanager
def held(folder: Path) -> Iterator[int]:
    """Hold the store: one process at a time changes what it lists. The descriptor is of the store."""
    descriptor = os.open(folder, FOLDER)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def staged(store: Path, name: str) -> Iterator[Stage]:
    """Make and lock a stage in a store; whatever is left of it at the end is removed.

    Args:
        store: host path of the store.
        name: of the new guest.

    Raises:
        FilesError: GUEST_EXISTS or GUEST_BEING_MADE.
    """
    clear_leftovers(store)
    with held(store):
        refuse_existing(store, name)
        if any(made == name for kind, made, _ in _unfinished(store) if kind == "stage"):
            raise FilesError(
                code="GUEST_BEING_MADE",
                message=f"guest {name!r} is being made by another process right now",
                hint="wait for it, or choose another name",
            )
        stage = Stage(name=name, folder=store / f".stage-{name}-{secrets.token_hex(8)}")
        stage.folder.mkdir(mode=0o700)
        lock = os.open(stage.folder, FOLDER)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        stage.rootfs.mkdir()
        stage.rootfs.chmod(0o755)  # whatever the caller's umask: it is the guest's `/`
        stage.scratch.mkdir(mode=0o700)
        yield stage
    finally:
        # After a commit there is nothing by this name. What cannot be removed now, the next command tries again.
        with contextlib.suppress(DroiddeckError):
            remove_tree(os.fspath(stage.folder))
        os.close(lock)


def refuse_existing(store: Path, name: str) -> None:
    """Refuse a name that a guest has.

    Raises:
        FilesError: GUEST_EXISTS.
    """
    if os.path.lexists(store / name):
        raise FilesError(
            code="GUEST_EXISTS",
            message=f"guest {name!r} is already there",
            hint=f"choose another name, or first: droiddeck-session guest remove {name}",
        )


def discard(store: Path, name: str) -> Path:
    """Take a guest out of a store in one step and return the folder that is left to be removed.

    The caller holds the store, and keeps the guest's own folder locked until that is gone.
    """
    return (store / name).rename(store / f".trash-{name}-{secrets.token_hex(8)}")


def clear_leftovers(store: Path) -> None:
    """Remove what interrupted commands left in a store. What cannot be removed stays: it is listed nowhere."""
    for _, _, entry in _unfinished(store):
        path = store / entry
        try:
            lock = os.open(path, FOLDER | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(DroiddeckError):
                remove_tree(os.fspath(path))
        except BlockingIOError:
            continue
        finally:
            os.close(lock)


def _unfinished(store: Path) -> list[tuple[str, str, str]]:
    """Return the unfinished folders of a store: what they are, the guest's name, the folder's."""
    matches = [_UNFINISHED.fullmatch(entry.name) for entry in sorted(store.iterdir())]
    return [(match[1], match[2], match[0]) for match in matches if match is not None]
