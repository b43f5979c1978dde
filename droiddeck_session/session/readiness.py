# SPDX-License-Identifier: GPL-3.0-or-later
"""When a session is ready: once its main program runs and each hook that the settings name has said so.

Hooks are a file that appears, a datagram `READY=1` (sd_notify(3)) at a socket, and a command that succeeds.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from droiddeck_session.backends.interface import HOST_PATH
from droiddeck_session.processes import ProcessError
from droiddeck_session.session.companions import run_beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from droiddeck_session.session.folder import SessionFolder
    from droiddeck_session.session.supervisor import Supervisor
    from droiddeck_session.settings import SessionSettings

_LOOK: Final = 0.05
_BETWEEN_PROBES: Final = 0.25
_DATAGRAM: Final = 4096


async def become_ready(supervisor: Supervisor, folder: SessionFolder, settings: SessionSettings) -> None:
    """Wait for readiness and record it; when it does not come in time, end the session as failed."""
    with contextlib.ExitStack() as stack:
        notified = stack.enter_context(_socket(settings.ready_socket)) if settings.ready_socket else None
        await supervisor.began.wait()
        with anyio.move_on_after(settings.ready_limit or None):
            async with anyio.create_task_group() as hooks:
                if settings.ready_file:
                    hooks.start_soon(_file, settings.ready_file)
                if notified:
                    hooks.start_soon(_datagram, notified)
                if settings.ready_command:
                    hooks.start_soon(_command, supervisor, settings.ready_command)
            folder.record("session.ready")
            return
    folder.failed("NOT_READY", f"not ready within {settings.ready_limit:g} s")
    supervisor.kill("not ready in time")


async def _file(path: str) -> None:
    # No event tells of a file in a folder that may not be there yet.
    while not os.path.lexists(path):  # noqa: ASYNC110, ASYNC240 - as above; one look of microseconds
        await anyio.sleep(_LOOK)


@contextlib.contextmanager
def _socket(path: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(0)
        Path(path).unlink(missing_ok=True)
        receiver.bind(path)
        try:
            yield receiver
        finally:
            Path(path).unlink(missing_ok=True)


async def _datagram(receiver: socket.socket) -> None:
    while True:
        await anyio.wait_readable(receiver)
        if b"READY=1" in receiver.recv(_DATAGRAM).split(b"\n"):
            return


async def _command(supervisor: Supervisor, command: str) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        while True:
            with contextlib.suppress(ProcessError):
                status = await run_beside(
                    supervisor, shlex.split(command), env={"PATH": HOST_PATH}, cwd="/", stdio=(nowhere,) * 3
                )
                if status.status == 0:
                    return
            await anyio.sleep(_BETWEEN_PROBES)
    finally:
        os.close(nowhere)
