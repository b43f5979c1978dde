# SPDX-License-Identifier: GPL-3.0-or-later
"""The store of guests: `guests/NAME/{guest.json,rootfs/}` in the data folder.

Only `guest` verbs write here. A session holds a shared flock(2) on the guest's folder for as long as it runs, so a
guest in use cannot be removed. A guest can also be any rootfs, given by its absolute path, which the store knows
nothing of.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import fcntl
import json
import os
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from droiddeck_session.errors import FilesError, UsageError
from droiddeck_session.guest import stages
from droiddeck_session.guest.removal import refuse_mounts, remove_tree
from droiddeck_session.guest.startable import why_not_startable
from droiddeck_session.rootfs import PathText  # noqa: TC001 - pydantic reads it
from droiddeck_session.settings import GUEST_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from droiddeck_session.guest.stages import Stage
    from droiddeck_session.paths import Directories

RECORD: Final = "guest.json"
DEFAULT_NAME: Final = "demo"
# env(1) leads the command line of every session; without it nothing can be started.
NEEDED: Final = "/usr/bin/env"


class GuestRecord(BaseModel):
    """What guest.json holds.

    Attributes:
        name: of the guest, as it was made.
        source: what it was made from: `suite trixie`, or the path of the archive or folder.
        suite: Debian suite, where it was made from one.
        arch: Debian architecture, where it is known.
        created: when, in UTC.
        packages: versions by package name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)

    schema_: Literal[1] = Field(default=1, alias="schema")
    name: str
    source: PathText
    suite: str | None = None
    arch: str | None = None
    created: datetime = Field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    packages: dict[str, str] = Field(default_factory=dict)

    def to_json(self) -> str:
        """Return the record as JSON; `from_json` reads it back."""
        document = {**self.model_dump(by_alias=True), "created": self.created.isoformat()}
        return json.dumps(document, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote.

        Raises:
            ValueError: the text is no record of this schema.
        """
        return cls.model_validate(json.loads(text))


@dataclass(frozen=True, kw_only=True)
class Guest:
    """A rootfs that sessions can run in.

    Attributes:
        name: of the store, or the absolute path as the user gave it.
        root: absolute host path of the rootfs, links resolved.
        folder: its folder in the store; None for a rootfs elsewhere.
        record: what is known of how it was made; None where nothing is.
    """

    name: str
    root: str
    folder: Path | None = None
    record: GuestRecord | None = None

    @property
    def fault(self) -> str | None:
        """What keeps sessions from running in it, or None."""
        return _no_folder(self.root) or why_not_startable(self.root, NEEDED)


class GuestStore:
    """The guests of one user."""

    def __init__(self, directories: Directories) -> None:
        self._folder = directories.guests

    def names(self) -> tuple[str, ...]:
        """Return the names of the guests, sorted. What is being made or removed is not among them."""
        try:
            entries = sorted(self._folder.iterdir())
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise unusable(self._folder, error) from error
        # Not Path.is_dir(): that raises for a link to where the caller may not look.
        return tuple(entry.name for entry in entries if GUEST_NAME.fullmatch(entry.name) and os.path.isdir(entry))  # noqa: PTH112

    def list(self) -> tuple[Guest, ...]:
        """Return the guests, sorted by name; broken ones too (`Guest.fault` tells)."""
        return tuple(self._guest(name) for name in self.names())

    def locate(self, name_or_path: str) -> Guest:
        """Return a guest by name, or by the absolute path of a rootfs, whether or not it can be used.

        Raises:
            FilesError: NO_GUEST or UNKNOWN_GUEST; names those that there are.
            UsageError: BAD_GUEST_NAME or HOST_ROOT.
        """
        if name_or_path.startswith("/"):
            return self._at(name_or_path)
        require_name(name_or_path)
        names = self.names()
        if name_or_path in names:
            return self._guest(name_or_path)
        create = "droiddeck-session guest create" + ("" if name_or_path == DEFAULT_NAME else f" {name_or_path}")
        if not names:
            raise FilesError(
                code="NO_GUEST",
                message=f"there is no guest {name_or_path!r}, nor any other",
                hint=f"make one: {create}",
            )
        near = difflib.get_close_matches(name_or_path, names, 1)
        meant = f"did you mean {near[0]!r}? " if near else ""
        raise FilesError(
            code="UNKNOWN_GUEST",
            message=f"there is no guest {name_or_path!r}; there are: {', '.join(names)}",
            hint=f"{meant}to make it: {create}",
        )

    def find(self, name_or_path: str) -> Guest:
        """Return a guest that can be used, by name or by the absolute path of a rootfs.

        Raises:
            FilesError: NO_GUEST, UNKNOWN_GUEST, or BROKEN_GUEST, which names what is missing.
            UsageError: BAD_GUEST_NAME or HOST_ROOT.
        """
        guest = self.locate(name_or_path)
        fault = guest.fault
        if fault is None:
            return guest
        again = f"droiddeck-session guest remove {guest.name}; droiddeck-session guest create {guest.name}"
        raise FilesError(
            code="BROKEN_GUEST",
            message=f"guest {guest.name!r} cannot be used: {fault}",
            hint=f"make it again: {again}" if guest.folder else "give the top folder of a whole Linux system",
        )

    @contextlib.contextmanager
    def reserve(self, name: str) -> Iterator[Stage]:
        """Make a stage for a new guest; unless `commit` was called, all of it is removed at the end.

        Raises:
            FilesError: GUEST_EXISTS, GUEST_BEING_MADE, STORE_UNUSABLE, or NO_SPACE.
            UsageError: BAD_GUEST_NAME.
        """
        require_name(name)
        try:
            # As the XDG specification has it for folders that are made for the user. It also keeps other accounts away
            # from the set-user-id files of a rootfs, which are the user's own here.
            for folder in (*reversed(self._folder.parents), self._folder):
                folder.mkdir(mode=0o700, exist_ok=True)
            with stages.staged(self._folder, name) as stage:
                yield stage
        except OSError as error:
            raise unusable(self._folder, error) from error

    def commit(self, stage: Stage, record: GuestRecord) -> Guest:
        """Put a finished stage into the store, whole.

        Raises:
            FilesError: GUEST_EXISTS: it was made by hand meanwhile.
        """
        remove_tree(os.fspath(stage.scratch))
        with (stage.folder / RECORD).open("x", encoding="utf-8") as file:
            file.write(record.to_json())
            file.flush()
            os.fsync(file.fileno())
        with stages.held(self._folder) as store:
            stages.refuse_existing(self._folder, stage.name)
            stage.folder.rename(self._folder / stage.name)
            os.fsync(store)
        return self._guest(stage.name)

    def remove(self, name: str) -> None:
        """Remove a guest of the store with all that is in it.

        Raises:
            FilesError: NO_GUEST, UNKNOWN_GUEST, GUEST_IN_USE, MOUNT_INSIDE, or NOT_REMOVED.
            UsageError: BAD_GUEST_NAME.
        """
        require_name(name)
        self.locate(name)
        folder = self._folder / name
        try:
            stages.clear_leftovers(self._folder)
            if folder.is_symlink():
                folder.unlink()
                return
            refuse_mounts(os.fspath(folder))
            lock = os.open(folder, stages.FOLDER)
            try:
                with stages.held(self._folder):
                    _lock_guest(lock, fcntl.LOCK_EX, _in_use(name))
                    trash = stages.discard(self._folder, name)
                remove_tree(os.fspath(trash))
            finally:
                os.close(lock)
        except OSError as error:
            raise unusable(folder, error) from error

    def _guest(self, name: str) -> Guest:
        folder = self._folder / name
        return Guest(
            name=name,
            root=os.path.realpath(folder / "rootfs"),
            folder=folder,
            record=_read_record(folder / RECORD),
        )

    def _at(self, path: str) -> Guest:
        root = os.path.realpath(path)
        why_not = _no_folder(root)
        if why_not:
            raise FilesError(
                code="UNKNOWN_GUEST",
                message=f"{path!r} cannot be a guest's rootfs: {why_not}",
                hint="give the absolute path of a rootfs, or a name of: droiddeck-session guest list",
            )
        if Path(root).samefile("/"):
            raise UsageError(
                code="HOST_ROOT",
                message=f"{path!r} is this machine's own root, no guest: a session would make its mount points in it",
                hint="give the absolute path of another rootfs, or make a guest: droiddeck-session guest create",
            )
        own = next((guest for guest in self.list() if guest.root == root), None)
        return own if own is not None else Guest(name=path, root=root)


@contextlib.contextmanager
def use(guest: Guest) -> Iterator[int | None]:
    """Hold a guest so that it cannot be removed; yield the lock's descriptor, which no child inherits.

    A rootfs outside the store has no lock: nothing of ours removes it.

    Raises:
        FilesError: UNKNOWN_GUEST: it is being removed.
    """
    if guest.folder is None:
        yield None
        return
    gone = FilesError(
        code="UNKNOWN_GUEST",
        message=f"guest {guest.name!r} is being removed by another process",
        hint="see droiddeck-session guest list",
    )
    try:
        lock = os.open(guest.folder, stages.FOLDER)
    except FileNotFoundError:
        raise gone from None
    except OSError as error:
        raise unusable(guest.folder, error) from error
    try:
        _lock_guest(lock, fcntl.LOCK_SH, gone)
        # It may have been renamed away between the two calls.
        if not guest.folder.exists() or not os.path.samestat(guest.folder.stat(), os.fstat(lock)):
            raise gone
        yield lock
    finally:
        os.close(lock)


def require_name(name: str) -> None:
    """Refuse what is no guest's name.

    Raises:
        UsageError: BAD_GUEST_NAME.
    """
    if not GUEST_NAME.fullmatch(name):
        raise UsageError(
            code="BAD_GUEST_NAME",
            message=f"{name!r} is not a guest's name",
            hint="use 1 to 64 of a-z, 0-9, '.', '_', '-', letter or digit first; or the absolute path of a rootfs",
        )


def unusable(path: str | Path, error: OSError) -> FilesError:
    """Return the error for a store or rootfs that cannot be written or read."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return FilesError(
            code="NO_SPACE",
            message=f"no space is left on the disk of {os.fspath(path)!r}: {error.strerror}",
            hint="make room, or set XDG_DATA_HOME to a folder on a larger disk; nothing half made was kept",
        )
    return FilesError(
        code="STORE_UNUSABLE",
        message=f"{os.fspath(error.filename or path)!r}: {error.strerror}",
        hint="XDG_DATA_HOME decides where guests are kept; that folder must be the caller's own",
    )


def _no_folder(path: str) -> str:
    """Return why a path is no folder that the caller can look into; empty if it is one."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - pathlib's is_dir() would not tell why
    except (FileNotFoundError, NotADirectoryError):
        return f"there is no folder {path!r}"
    except OSError as error:
        return f"{path!r}: {error.strerror}"
    if not stat.S_ISDIR(mode):
        return f"{path!r} is no folder"
    return "" if os.access(path, os.X_OK) else f"the caller may not look into {path!r}"


def _lock_guest(lock: int, kind: int, refusal: FilesError) -> None:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        raise refusal from None


def _in_use(name: str) -> FilesError:
    return FilesError(
        code="GUEST_IN_USE",
        message=f"guest {name!r} is in use by a running session",
        hint="end its sessions first",
    )


def _read_record(path: Path) -> GuestRecord | None:
    try:
        return GuestRecord.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
