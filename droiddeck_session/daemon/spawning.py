# SPDX-License-Identifier: GPL-3.0-or-later
"""The daemon's side of the process that forks workers: it is started at once, and again should it have ended."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import sys
from typing import TYPE_CHECKING, Final

import anyio

from droiddeck_session.daemon.protocol import DaemonError
from droiddeck_session.processes import Program, spawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MODULE: Final = "droiddeck_session.daemon.spawner"
_PACKET: Final = 64


class Spawner:
    """Makes workers.

    Args:
        environ: the daemon's environment.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        # The folders of this package come first, wherever the daemon was started.
        path = os.pathsep.join([*sys.path, environ.get("PYTHONPATH", "")]).strip(os.pathsep)
        self._environ = {**environ, "PYTHONPATH": path}
        # The daemon raises its own for its connections; programs get what it was given.
        self._limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._one_at_a_time = anyio.Lock()
        self._program: Program | None = None
        self._socket: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """Its pid, from which sessions inherit what the kernel hands on; None while there is none."""
        return self._program.process.pid if self._program else None

    def begin(self) -> None:
        """Start it, so that the first session need not wait for its imports.

        Raises:
            ProcessError: it cannot be started.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        number = theirs.fileno()
        argv = (sys.executable, "-P", "-m", _MODULE, str(number), *map(str, self._limits))
        with theirs:
            self._program = spawn(argv, env=self._environ, cwd="/", keep=(number,))
        ours.settimeout(0)
        self._socket = ours

    def end(self) -> None:
        """Let it end, once it has done what it was asked for."""
        if self._socket:
            self._socket.close()
            self._socket = None
        if self._program:
            os.close(self._program.pidfd)
            self._program.process.wait()
            self._program = None

    async def spawn(self, descriptors: Sequence[int]) -> tuple[int, int]:
        """Make a worker and return its pid and a pidfd of it.

        Args:
            descriptors: its channel and its descriptors 0 to 2.

        Raises:
            DaemonError: it cannot be made.
        """
        async with self._one_at_a_time:
            for _ in range(2):
                if self._socket is None:
                    self.begin()
                with contextlib.suppress(OSError):
                    if (made := await self._ask(descriptors)) is not None:
                        return made
                self.end()
        raise DaemonError(
            code="NO_WORKER", message="the process that starts sessions ended twice", hint="see the daemon's log"
        )

    async def _ask(self, descriptors: Sequence[int]) -> tuple[int, int] | None:
        assert self._socket is not None  # noqa: S101 - for mypy: spawn() has begun it
        socket.send_fds(self._socket, [b"fork"], list(descriptors))
        await anyio.wait_readable(self._socket)
        packet, received, _, _ = socket.recv_fds(self._socket, _PACKET, 1)
        if not packet:
            return None
        os.set_inheritable(received[0], False)  # noqa: FBT003 - os has no name for it
        return int(packet), received[0]
