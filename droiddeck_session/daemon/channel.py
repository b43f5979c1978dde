# SPDX-License-Identifier: GPL-3.0-or-later
"""The daemon's end of the socket between it and a worker: lines in, and orders out without waiting for the worker."""

from __future__ import annotations

import contextlib
import math
import os
import socket
from typing import TYPE_CHECKING, Final

import anyio

from droiddeck_session.daemon.protocol import LONGEST_LINE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

_CHUNK: Final = 65536


class Orders:
    """What a worker is still to be told, in order: a line may be longer than its socket takes at once."""

    def __init__(self) -> None:
        self._give, self._take = anyio.create_memory_object_stream[tuple[bytes, tuple[int, ...]]](math.inf)

    def add(self, text: bytes, descriptors: Sequence[int] = ()) -> None:
        """Add a line with descriptors, which stay the caller's; nothing happens for a session that is over."""
        own = tuple(os.dup(descriptor) for descriptor in descriptors)
        try:
            self._give.send_nowait((text, own))
        except anyio.ClosedResourceError:
            _close(own)

    async def send_all(self, channel: socket.socket) -> None:
        """Send what is added, until cancelled. A worker that takes nothing is gone, or ending: noticed elsewhere."""
        async for text, descriptors in self._take:
            try:
                await _send(channel, text, descriptors)
            finally:
                _close(descriptors)

    def close(self) -> None:
        """Drop what has not been sent."""
        self._give.close()
        with contextlib.suppress(anyio.EndOfStream):
            while True:
                _close(self._take.receive_nowait()[1])
        self._take.close()


async def _send(channel: socket.socket, text: bytes, descriptors: Sequence[int]) -> None:
    left = memoryview(text)
    while left:
        try:
            sent = socket.send_fds(channel, [left], list(descriptors))
        except BlockingIOError:
            await anyio.wait_writable(channel)
        except OSError:
            return
        else:
            left, descriptors = left[sent:], ()


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


async def lines(channel: socket.socket) -> AsyncIterator[bytes]:
    """Yield what a worker says, line by line, until it is gone or says too much in one."""
    rest = b""
    while True:
        await anyio.wait_readable(channel)
        try:
            chunk = channel.recv(_CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            chunk = b""
        if not chunk or len(rest) > LONGEST_LINE:
            return
        *whole, rest = (rest + chunk).split(b"\n")
        for text in whole:
            yield text
