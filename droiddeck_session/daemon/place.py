# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the daemon's socket is, and opening it there however long the path.

An address of unix(7) holds 107 bytes of path. A longer one is reached through a descriptor of its folder:
`/proc/self/fd/N/control` names the same socket.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

from droiddeck_session.daemon.protocol import DaemonError
from droiddeck_session.errors import FilesError
from droiddeck_session.paths import NAME, directories

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOCKET: Final = "control"
VARIABLE: Final = "DROIDDECK_SOCKET"
_BACKLOG: Final = 128


def socket_path(environ: Mapping[str, str]) -> Path:
    """Return where the daemon of this user listens.

    `DROIDDECK_SOCKET` decides; else it is in XDG_RUNTIME_DIR, or where there is none, in the state folder.
    """
    if chosen := environ.get(VARIABLE, ""):
        return Path(chosen)
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(runtime) / NAME if runtime.startswith("/") else directories(environ).state / "run"
    return folder / SOCKET


def connect(path: Path) -> socket.socket:
    """Connect to the daemon.

    Raises:
        DaemonError: none listens there.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(path) as address:
            connection.connect(address)
    except OSError as error:
        connection.close()
        raise DaemonError(
            code="NO_DAEMON",
            message=f"no daemon listens at {str(path)!r}: {error.strerror}",
            hint="start one: droiddeck-session daemon",
        ) from error
    return connection


def listen(path: Path) -> tuple[socket.socket, int]:
    """Listen at a path in a folder of this user's own, and return the socket and the lock that says whose it is.

    Raises:
        DaemonError: another daemon listens there.
        FilesError: the folder cannot be made, or is another user's.
    """
    lock = -1
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_own(path.parent)
        lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever holds the lock may remove what a killed daemon left.
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _short(path) as address:
            listener.bind(address)
        path.chmod(0o600)
        listener.listen(_BACKLOG)
    except BlockingIOError as error:
        os.close(lock)
        raise DaemonError(
            code="DAEMON_RUNS",
            message=f"another daemon listens at {str(path)!r} already",
            hint=f"use that one, or set {VARIABLE} to another path",
        ) from error
    except OSError as error:
        if lock >= 0:
            os.close(lock)
        raise FilesError(
            code="SOCKET_NOT_MADE",
            message=f"cannot listen at {str(path)!r}: {error.strerror}",
            hint=f"set XDG_RUNTIME_DIR to a folder of your own, or {VARIABLE} to a path in one",
        ) from error
    return listener, lock


def _require_own(folder: Path) -> None:
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise PermissionError(1, "its folder is another user's")


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """Give an address that fits for a path of any length, valid inside the block."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
