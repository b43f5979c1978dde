# SPDX-License-Identifier: GPL-3.0-or-later
"""What a session without a terminal prints: output.log in its folder, of which the first bytes up to a limit are kept.

The rest is taken from the pipe all the same: a program that floods neither blocks nor dies of SIGPIPE. The kernel
moves the bytes (splice(2)), so what was written before its writer was killed is there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

OUTPUT: Final = "output.log"
_CHUNK: Final = 1 << 20
# Seconds for what is in the pipe, which is at most its size.
_LAST_WORDS: Final = 2.0


class Output:
    """The file output.log of one session, filled from a pipe by a thread of its own.

    Args:
        path: the file; made, or made empty.
        limit: bytes that are kept.

    Attributes:
        writer: the pipe's end for the programs; closed by `close`.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._reader, self.writer = os.pipe2(os.O_CLOEXEC)
        self._left = limit
        self._thread = threading.Thread(target=self._move, name=OUTPUT, daemon=True)
        # Signals are the main thread's.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def close(self) -> None:
        """Take what is still in the pipe. A process that could not be ended may hold it: its output is not awaited."""
        os.close(self.writer)
        self._thread.join(_LAST_WORDS)

    def _move(self) -> None:
        nowhere = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
        while True:
            target, most = (self._file, min(self._left, _CHUNK)) if self._left > 0 else (nowhere, _CHUNK)
            try:
                moved = os.splice(self._reader, target, most)
            except OSError:
                # The disk is full, or the file system cannot: the rest is lost, the programs go on.
                self._left, moved = 0, -1
                if target == nowhere:
                    with contextlib.suppress(OSError):
                        moved = len(os.read(self._reader, _CHUNK))
            if moved == 0:
                break
            self._left -= max(moved, 0)
        for descriptor in (nowhere, self._reader, self._file):
            os.close(descriptor)
