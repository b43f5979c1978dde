# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd's side of a service: readiness, status and watchdog (sd_notify(3)), and sockets it opened (sd_listen_fds(3)).

Both protocols are a datagram and two variables; no library is needed. Without the variables nothing is sent.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import TYPE_CHECKING, Final

import anyio

from droiddeck_session.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping, Sized

# sd_listen_fds(3).
_FIRST_SOCKET: Final = 3


class Notifier:
    """Tells the service manager how the daemon is.

    Args:
        environ: the daemon's environment: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        # An abstract socket is written with a leading @.
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        ours = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        usec = environ.get("WATCHDOG_USEC", "")
        self._interval = int(usec) / 2_000_000 if ours and usec.isdecimal() and int(usec) else None
        self._told = ""

    def ready(self, sessions: Sized) -> None:
        """Say that connections are served."""
        self._send("READY=1", f"MAINPID={os.getpid()}", f"STATUS={_in_words(sessions)}")

    def status(self, sessions: Sized) -> None:
        """Say how many sessions run, if that has changed."""
        if (text := _in_words(sessions)) != self._told:
            self._told = text
            self._send(f"STATUS={text}")

    def reloading(self) -> None:
        """Say that a reload has begun; `ready` ends it."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """Say that the daemon is about to end."""
        self._send("STOPPING=1", "STATUS=ending the sessions")

    async def keep_alive(self) -> None:
        """Feed the watchdog twice in its time; return at once where there is none."""
        while self._interval is not None:
            self._send("WATCHDOG=1")
            await anyio.sleep(self._interval)

    def _send(self, *assignments: str) -> None:
        if not self._address:
            return
        # A manager that has gone away is no reason to end.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto("\n".join(assignments).encode(), self._address)


def passed_socket(environ: MutableMapping[str, str]) -> socket.socket | None:
    """Return the listening socket that the service manager has passed, if it has; its variables are removed.

    Raises:
        UsageError: what was passed is not one listening Unix stream socket.
    """
    pid, count = environ.pop("LISTEN_PID", ""), environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()):
        return None
    with contextlib.suppress(OSError):
        os.set_inheritable(_FIRST_SOCKET, False)  # noqa: FBT003 - os has no name for it
        passed = socket.socket(fileno=_FIRST_SOCKET)
        listens = passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        if count == "1" and listens and (passed.family, passed.type) == (socket.AF_UNIX, socket.SOCK_STREAM):
            return passed
        passed.detach()
    raise UsageError(
        code="PASSED_SOCKET",
        message=f"{count} descriptors were passed, not one Unix stream socket that listens",
        hint="pass one: ListenStream= with an absolute path",
    )


def _in_words(sessions: Sized) -> str:
    return f"{len(sessions)} session{'' if len(sessions) == 1 else 's'}"
