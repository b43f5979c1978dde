# SPDX-License-Identifier: GPL-3.0-or-later
"""What sessions leave in their folders, for a person to read or to take away."""

from __future__ import annotations

import shutil
import stat
import time
from typing import TYPE_CHECKING

from droiddeck_session.errors import FilesError
from droiddeck_session.session.folder import LOG, folders
from droiddeck_session.session.output import OUTPUT
from droiddeck_session.session.recovery import COMPLETE, EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from droiddeck_session.paths import Directories

_CHUNK = 1 << 16
# What a person may pass on: no value of a variable and no argument is in them (plan.json is without values).
_COLLECTED = (LOG, EVENTS, OUTPUT, "plan.json", COMPLETE)


def find(directories: Directories, name: str) -> Path:
    """Return the folder of a session by its id, the beginning of one, or `latest`.

    Raises:
        FilesError: there is none, or several.
    """
    known = folders(directories.sessions) if directories.sessions.is_dir() else []
    found = known[-1:] if name == "latest" else [path for path in known if path.name.startswith(name)]
    exact = [path for path in known if path.name == name]
    found = exact or found
    if len(found) == 1:
        return found[0]
    if found:
        message = f"several sessions are meant: {', '.join(path.name for path in found)}"
        raise FilesError(code="SEVERAL_SESSIONS", message=message, hint="name one")
    raise FilesError(
        code="NO_SESSION_LOGS",
        message=f"no session {name!r} in {str(directories.sessions)!r}",
        hint="the folders there are named as the sessions are",
    )


def output(folder: Path, *, follow: bool, pause: float) -> Iterator[bytes]:
    """Yield what a session printed; what it logged, where it printed to a terminal.

    Args:
        folder: the session's.
        follow: go on with what is added, until the folder is complete.
        pause: seconds between two looks.

    Raises:
        FilesError: there is nothing to read.
    """
    path = folder / OUTPUT if (folder / OUTPUT).exists() else folder / LOG
    try:
        with path.open("rb") as file:
            while True:
                complete = (folder / COMPLETE).exists()
                while chunk := file.read(_CHUNK):
                    yield chunk
                if complete or not follow:
                    return
                time.sleep(pause)
    except OSError as error:
        raise FilesError(
            code="NO_SESSION_LOGS", message=f"cannot read {str(path)!r}: {error.strerror}", hint="see its folder"
        ) from error


def copy(folder: Path, destination: Path) -> int:
    """Copy a session's texts into a new folder and return how many there were.

    Raises:
        FilesError: LOG_COPY_FAILED.
    """
    try:
        destination.mkdir(parents=True)
        copied = 0
        for name in _COLLECTED:
            source = folder / name
            if source.exists() and stat.S_ISREG(source.lstat().st_mode):
                shutil.copyfile(source, destination / name)
                copied += 1
    except OSError as error:
        raise FilesError(
            code="LOG_COPY_FAILED",
            message=f"cannot copy to {str(destination)!r}: {error.strerror}",
            hint="name a folder that is not there yet",
        ) from error
    return copied
