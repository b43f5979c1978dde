# SPDX-License-Identifier: GPL-3.0-or-later
"""A session's events: one JSON object per line, `t` in ms since the epoch and never going back.

Each line is one write to a file opened for appending, so lines of two writers do not mix and a crash leaves whole
lines. A disk that is full costs the line, not the session.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class EventLog:
    """The file events.jsonl of one session.

    Args:
        path: the file; made when it is missing, a line that a crash left unfinished is cut off.
        session: the session's id, in every event.

    Attributes:
        listener: is told each event, written or not.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path, session: str) -> None:
        self._session = session
        self.listener: Callable[[dict[str, Any]], None] = lambda _: None
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._last = 0
        text = path.read_bytes()
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            os.ftruncate(self._file, whole)
        for event in read_events(path):
            self._last = max(self._last, event["t"])

    def emit(self, event: str, **fields: object) -> None:
        """Write one event; fields must be JSON values, and names or numbers rather than values of the user's."""
        self._last = max(self._last, time.time_ns() // 1_000_000)
        told = {"t": self._last, "event": event, "session": self._session, **fields}
        line = json.dumps(told).encode() + b"\n"
        try:
            size = os.fstat(self._file).st_size
            if os.write(self._file, line) < len(line):
                os.ftruncate(self._file, size)
        except OSError:
            pass
        self.listener(told)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the whole events of a file; lines that are none are left out."""
    for line in path.read_bytes().splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and isinstance(event.get("t"), int):
            yield event
