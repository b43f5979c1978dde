# SPDX-License-Identifier: GPL-3.0-or-later
"""A session's log: JSON lines in session.log, warnings also to the person at the terminal, at once.

Of variables only the names are ever logged. structlog renders the lines, in a thread that starts when the program
runs: importing it costs a start more than the rest of the supervisor. Lines wait until then, and are all written when
the log is closed; of a session whose supervisor is killed the last ones may be lost (events.jsonl has no such delay).
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import queue
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_RICH: Final = "rich"


class _Line(NamedTuple):
    level: str
    event: str
    fields: dict[str, object]


class SessionLog:
    """The file session.log of one session.

    Args:
        path: the file; made when it is missing.
        session: the session's id, in every line.
        tell: gets each warning for the person at the terminal.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path, session: str, tell: Callable[[str], None]) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._session = session
        self._tell = tell
        self._lines: queue.SimpleQueue[_Line | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None

    def info(self, event: str, **fields: object) -> None:
        """Log what happened; fields must be JSON values."""
        self._put("info", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Log a failure, of which the person is told elsewhere."""
        self._put("error", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log what a person should know, and tell it."""
        # A terminal that is gone, or a pipe that nobody reads, does not end a session.
        with contextlib.suppress(OSError):
            self._tell(event)
        self._put("warning", event, fields)

    def write_from_now_on(self) -> None:
        """Write what waits and what comes, in a thread of its own."""
        self._writer = threading.Thread(target=self._write, name="session.log", daemon=True)
        # It inherits the mask: signals, job control's above all, are the main thread's.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._writer.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def close(self) -> None:
        """Write what is left, and close the file. It never fails: a session's status matters more."""
        self._lines.put(None)
        if self._writer is None:
            self._write()
        else:
            self._writer.join()
        os.close(self._file)

    def _put(self, level: str, event: str, fields: dict[str, object]) -> None:
        now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        self._lines.put(_Line(level, event, {"timestamp": now, "session": self._session, **fields}))

    def _write(self) -> None:
        line = self._lines.get()
        if line is None:
            return
        file = _File(self._file)
        try:
            write = _with_structlog(file)
        except Exception as error:  # noqa: BLE001 - an import that late can fail in any way, and the lines matter more
            write = _without_structlog(file)
            write(_Line("warning", "structlog cannot be imported", {"session": self._session, "why": repr(error)}))
        while line is not None:
            write(line)
            line = self._lines.get()


class _File:
    """Where structlog writes: whole lines to a descriptor. A full disk costs the line, not the session."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def info(self, line: str) -> None:
        with contextlib.suppress(OSError):
            size = os.fstat(self._descriptor).st_size
            text = line.encode(errors="backslashreplace") + b"\n"
            if os.write(self._descriptor, text) < len(text):
                os.ftruncate(self._descriptor, size)

    warning = error = info


def _with_structlog(file: _File) -> Callable[[_Line], None]:
    structlog = _structlog()
    logger = structlog.wrap_logger(
        file,
        wrapper_class=structlog.BoundLogger,
        processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()],
    )
    return lambda line: getattr(logger, line.level)(line.event, **line.fields)


def _without_structlog(file: _File) -> Callable[[_Line], None]:
    return lambda line: file.info(json.dumps({**line.fields, "event": line.event, "level": line.level}))


def _structlog() -> Any:
    """Import structlog without rich, whose tracebacks its console renderer would load: 9 ms instead of 40.

    A None in `sys.modules` is how Python spells that a module is not there; structlog can do without this one.
    """
    loaded = sys.modules.get(_RICH)
    if loaded is None:
        sys.modules[_RICH] = None  # type: ignore[assignment]
    try:
        import structlog  # noqa: PLC0415 - see the module's docstring
    finally:
        if loaded is None:
            del sys.modules[_RICH]
    return structlog
