# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that forks a worker for each session: it has all modules loaded, one thread, and no event loop.

So a session starts in the time of a fork, the daemon itself need not load what planning needs, and memory is shared.
It speaks over a socket of packets: a packet with the channel and the three descriptors of a session is answered by the
worker's pid, with a pidfd. It ends when the daemon's end is closed; workers do not need it any more.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import resource
import signal
import socket
import sys
from typing import Final, NoReturn

from droiddeck_session import interruption
from droiddeck_session.backends import registry
from droiddeck_session.daemon.protocol import STDIO
from droiddeck_session.daemon.worker import work
from droiddeck_session.errors import BackendError

# anyio's event loop, and what renders the log.
_LATER: Final = ("anyio._backends._asyncio", "structlog")
_PACKET: Final = 64
_DESCRIPTORS: Final = 1 + STDIO


def serve(connection: socket.socket) -> None:
    """Fork a worker for each packet, until the daemon is gone."""
    # Ended workers shall not wait for us: the daemon knows them by pidfd.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # A worker is told of by its pidfd from its first moment; it unblocks them once it can act on them.
    signal.pthread_sigmask(signal.SIG_BLOCK, interruption.REQUESTS)
    gc.freeze()
    while True:
        packet, descriptors, _, _ = socket.recv_fds(connection, _PACKET, _DESCRIPTORS)
        if not packet:
            return
        pid = os.fork()
        if pid == 0:
            connection.close()
            _work(descriptors)
        pidfd = os.pidfd_open(pid)
        for descriptor in descriptors:
            os.close(descriptor)
        socket.send_fds(connection, [str(pid).encode()], [pidfd])
        os.close(pidfd)


def _work(descriptors: list[int]) -> NoReturn:
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        channel, *stdio = descriptors
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # noqa: FBT003 - os has no name for it
        first, second, third = stdio
        status = work(socket.socket(fileno=channel), (first, second, third))
    finally:
        # Not by an exception: the forker's own frames are below.
        os._exit(status)


def main() -> None:
    """Serve the packet socket that the first argument numbers, with the limits of descriptors that follow."""
    number, soft, hard = map(int, sys.argv[1:])
    connection = socket.socket(fileno=number)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    _preload()
    serve(connection)


def _preload() -> None:
    """Load what sessions load only once they need it."""
    for name in registry.names():
        # A broken one is told of to who asks for it.
        with contextlib.suppress(BackendError):
            registry.load(name)
    for module in _LATER:
        importlib.import_module(module)


if __name__ == "__main__":
    main()
