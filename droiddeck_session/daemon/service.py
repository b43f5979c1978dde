# SPDX-License-Identifier: GPL-3.0-or-later
"""Running the daemon: on a socket of its own or of the service manager's, or for one client on standard streams."""

from __future__ import annotations

import contextlib
import os
import select
from typing import TYPE_CHECKING

import anyio

from droiddeck_session.daemon import place
from droiddeck_session.daemon.notify import Notifier, passed_socket
from droiddeck_session.daemon.pipes import PipeConnection
from droiddeck_session.daemon.server import Server
from droiddeck_session.errors import UsageError
from droiddeck_session.processes import hold_closed_descriptors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def serve(environ: Mapping[str, str], tell: Callable[[str], None]) -> None:
    """Serve until TERM or INT, and end all sessions before.

    Args:
        environ: the daemon's environment.
        tell: gets each line for the daemon's log.

    Raises:
        DaemonError: another daemon runs.
        FilesError: the socket cannot be made.
        UsageError: what the service manager has passed is no socket to listen on.
    """
    own = dict(environ)
    listener = passed_socket(own)
    path = None
    if listener is None:
        hold_closed_descriptors()
        path = place.socket_path(own)
        listener, _ = place.listen(path)
        tell(f"listening at {path}")
    anyio.run(Server(_for_sessions(own), Notifier(own), tell).run, listener)
    if path is not None:
        # Its lock is held until we are gone, so no other daemon's socket is removed here.
        path.unlink(missing_ok=True)


def host(environ: Mapping[str, str]) -> None:
    """Serve the one client on standard input and output; its end is the end of all sessions.

    Args:
        environ: the environment.

    Raises:
        UsageError: one of them is a file, which has no other end that could close.
    """
    for number, name in enumerate(("input", "output")):
        _require_other_end(number, name)
    connection = PipeConnection(os.dup(0), os.dup(1))
    # What somebody prints by mistake must not get between the lines, nor into what an app merges with them.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)

    async def serve_client() -> None:
        await Server(_for_sessions(environ), Notifier({}), lambda _: None).run(None, connection)

    with contextlib.suppress(KeyboardInterrupt):
        anyio.run(serve_client)


def _require_other_end(descriptor: int, name: str) -> None:
    with select.epoll() as watch:
        try:
            watch.register(descriptor, 0)
        except PermissionError as error:  # epoll_ctl(2): a plain file, a folder or the like
            raise UsageError(
                code="NOT_A_PIPE",
                message=f"host: standard {name} is neither a pipe nor a socket nor a terminal",
                hint="a program starts it and speaks with it: docs/daemon.md",
            ) from error


def _for_sessions(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what the service manager means for the daemon alone."""
    ours = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}
    return {name: value for name, value in environ.items() if name not in ours}
