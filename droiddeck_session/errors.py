# SPDX-License-Identifier: GPL-3.0-or-later
"""The one error hierarchy: what went wrong, with what, and what to do about it.

`code` is stable API, `message` names the thing, `hint` names the fix. Errors are raised where the fact is known and
turned into text once, in `cli/`. `exit_status` is that of a control verb; a wrapping verb ends with 125 instead, so
that 1 to 124 stay the program's own.
"""

from __future__ import annotations

from typing import ClassVar

# The two tables of exit statuses stand in droiddeck-session(1), EXIT STATUS; a test holds them to these.
EXIT_OK = 0
EXIT_CHECK_FAILED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_SESSION_STATE = 4
EXIT_TIMEOUT = 5
EXIT_FILES = 6
EXIT_NOT_PERMITTED = 7

# As env(1) and timeout(1) have them.
EXIT_OWN_FAILURE = 125
EXIT_CANNOT_RUN = 126
EXIT_NOT_FOUND = 127
EXIT_SIGNAL_BASE = 128


class DroiddeckError(Exception):
    """Anything that ends a command with one line for the user.

    Args:
        code: upper-case name of the situation; stable API.
        message: one sentence that names the thing.
        hint: what the user can do; empty only where nothing can be done.
    """

    exit_status: ClassVar[int] = EXIT_USAGE

    def __init__(self, *, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


class UsageError(DroiddeckError):
    """The command line asks for something that cannot be meant."""


class SettingError(DroiddeckError):
    """A setting or a table of settings holds a value that cannot be used."""


class PlanError(DroiddeckError):
    """The request cannot be expressed on this machine, in this guest, with this backend."""


class BackendError(DroiddeckError):
    """A backend is missing, cannot run here, or does not do what was asked of it."""


class FilesError(DroiddeckError):
    """A file, folder or guest cannot be read or written."""

    exit_status = EXIT_FILES


class NotPermittedError(DroiddeckError):
    """The machine's policy or the caller's rights do not allow it."""

    exit_status = EXIT_NOT_PERMITTED
