# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder that a probe fills: held while it runs; if the probe is killed, the next clears it, processes and all.

The kernel drops the lock with the process that held it, however that ended. So a folder whose lock is free is a
leftover, and what runs in the name of its probe is one too: each process carries the token that lies in the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from droiddeck_session.backends.confinement import TOKEN
from droiddeck_session.backends.marked import end_marked
from droiddeck_session.processes import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX: Final = "droiddeck-probe-"
_LOCK: Final = "lock"
_TOKEN_SIZE: Final = 64


@contextlib.contextmanager
def probe_scratch() -> Iterator[Path]:
    """Give a folder for a probe and remove it afterwards; first clear what killed ones left.

    Raises:
        OSError: it cannot be made.
    """
    clear_leftovers()
    with contextlib.ExitStack() as undone:
        with uninterrupted():
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            undone.callback(_remove, folder)
            new = folder / f"{_LOCK}.new"
            lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            undone.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX)
            # By this name it is held from the first moment.
            new.rename(folder / _LOCK)
        yield folder


def clear_leftovers() -> None:
    """End the processes of probes that were killed, and remove their folders. Other accounts' are left alone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
                _clear(folder)


def _clear(folder: Path) -> None:
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for file in folder.rglob(TOKEN):
            token = file.read_bytes()[:_TOKEN_SIZE].decode("ascii", "replace")
            if token:
                end_marked(token)
        _remove(folder)
    finally:
        os.close(lock)


def _remove(folder: Path) -> None:
    with uninterrupted():
        shutil.rmtree(folder, ignore_errors=True)
