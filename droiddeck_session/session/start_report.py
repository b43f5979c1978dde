# SPDX-License-Identifier: GPL-3.0-or-later
"""What a wrapper reports on a descriptor of its own: which process it started, and whether it became the program.

bwrap ends with status 1 when it cannot set up the guest, which a program may end with too. With `--json-status-fd` it
writes one JSON object a line: `child-pid` in the first, `exit-code` only if the program was started (bwrap(1)). A
program in bwrap's place may write anything, so only these two are looked for, and the rest is nobody's fault.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from types import TracebackType

    from droiddeck_session.backends.interface import HostCommand

# The whole report is a few short lines. More is not read; the pipe does not block, so the writer never waits for us.
_REPORT_SIZE: Final = 65536
_CHILD: Final = re.compile(rb'"child-pid"\s*:\s*([1-9]\d{0,9})\s*[,}]')
_ENDED: Final = b'"exit-code"'


class StartReport:
    """A pipe for the report of a command that makes one; nothing for one that does not."""

    def __init__(self, command: HostCommand) -> None:
        self._argv = command.argv
        self._option = command.report_option
        self._text = b""
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) if self._option else (-1, -1)

    def __enter__(self) -> Self:
        """Return itself; the descriptors are closed on exit."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the descriptors."""
        for descriptor in (self._reader, self._writer):
            if descriptor >= 0:
                os.close(descriptor)
        self._reader = self._writer = -1

    @property
    def argv(self) -> tuple[str, ...]:
        """The command's argv, with the option where the command has one."""
        return (self._argv[0], self._option, str(self._writer), *self._argv[1:]) if self._option else self._argv

    @property
    def keep(self) -> tuple[int, ...]:
        """The descriptors that the program needs."""
        return (self._writer,) if self._option else ()

    def child(self) -> int | None:
        """Return the process that was started to become the guest's program, as far as the wrapper has said so."""
        found = _CHILD.search(self._read())
        return int(found[1]) if found else None

    def never_started(self) -> bool:
        """Whether a wrapper that has exited says that it never started the guest's program."""
        return bool(self._option) and _ENDED not in self._read()

    def _read(self) -> bytes:
        """Return what has been reported so far."""
        if self._reader >= 0 and len(self._text) < _REPORT_SIZE:
            with contextlib.suppress(BlockingIOError):
                self._text += os.read(self._reader, _REPORT_SIZE)
        return self._text
