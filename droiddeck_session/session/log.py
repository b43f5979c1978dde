# SPDX-License-Identifier: GPL-3.0-or-later
"""A session's log: JSON lines in session.log, warnings also on stderr in plain text.

Of variables only the names are ever logged. structlog is imported with the first line: it costs a start more than the
rest of the supervisor.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from pathlib import Path

_STDERR: Final = 2


class SessionLog:
    """The file session.log of one session.

    Args:
        path: the file; made when it is missing.
        session: the session's id, in every line.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path, session: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._session = session
        self._logger: Any = None

    def info(self, event: str, **fields: object) -> None:
        """Write a line to the file."""
        self._structlog().info(event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        """Write a line to the file and tell the person at the terminal."""
        self._structlog().warning(event, **fields)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _structlog(self) -> Any:
        if self._logger is None:
            import structlog  # noqa: PLC0415 - see the module's docstring

            self._logger = structlog.wrap_logger(
                _Lines(self._file),
                processors=[
                    structlog.processors.add_log_level,
                    structlog.processors.TimeStamper(fmt="iso", utc=True),
                    _tell_warnings,
                    structlog.processors.JSONRenderer(),
                ],
                session=self._session,
            )
        return self._logger


class _Lines:
    """Where structlog writes: whole lines to a descriptor. A full disk or a lost terminal does not end a session."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def info(self, line: str) -> None:
        try:
            os.write(self._descriptor, line.encode(errors="backslashreplace") + b"\n")
        except OSError:
            return

    warning = info


def _tell_warnings(_logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if method == "warning":
        _Lines(_STDERR).info(f"droiddeck-session: {event['event']}")
    return event
