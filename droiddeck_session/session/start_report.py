# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a wrapper ever started the guest's program, as it reports on a descriptor of its own.

bwrap ends with status 1 when it cannot set up the guest, which a program may end with too. With `--json-status-fd` it
writes one JSON object a line, `exit-code` among them only if the program was started (bwrap(1)).
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from types import TracebackType

    from droiddeck_session.backends.interface import HostCommand

# The whole report is two short lines; it always fits into a pipe, so the writer never waits for us.
_REPORT_SIZE: Final = 65536


class StartReport:
    """A pipe for the report of a command that makes one; nothing for one that does not."""

    def __init__(self, command: HostCommand) -> None:
        self._argv = command.argv
        self._option = command.report_option
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

    def never_started(self) -> bool:
        """Whether a wrapper that has exited says that it never started the guest's program."""
        if not self._option:
            return False
        try:
            lines = os.read(self._reader, _REPORT_SIZE).splitlines()
        except BlockingIOError:
            lines = []
        return not any("exit-code" in json.loads(line) for line in lines)
