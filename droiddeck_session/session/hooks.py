# SPDX-License-Identifier: GPL-3.0-or-later
"""The user's commands before and after a session, on the host; what follows the first always runs, and once."""

from __future__ import annotations

import contextlib
import os
import shlex
from typing import TYPE_CHECKING, Final

from droiddeck_session.backends.interface import HOST_PATH
from droiddeck_session.processes import ProcessError, run, uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from droiddeck_session.session.folder import SessionFolder
    from droiddeck_session.settings import SessionSettings

TIME_LIMIT: Final = 60.0


@contextlib.contextmanager
def around(folder: SessionFolder, settings: SessionSettings) -> Iterator[None]:
    """Run `session.before`, then the block, then `session.after`, whatever came of the two.

    Both know the session as SESSION_ID and its folder as SESSION_FOLDER.

    Raises:
        ProcessError: the first failed; the block does not run then.
    """
    try:
        if settings.before:
            folder.record("hook.before")
            _run(settings.before, folder)
        yield
    finally:
        if settings.after:
            folder.record("hook.after")
            try:
                with uninterrupted():
                    _run(settings.after, folder)
            except ProcessError as error:
                folder.log.warning("the command after the session failed", why=error.message)


def _run(command: str, folder: SessionFolder) -> None:
    env = {
        "PATH": HOST_PATH,
        "SESSION_ID": folder.id,
        "SESSION_FOLDER": os.fspath(folder.path),
    }
    run(shlex.split(command), env=env, cwd="/", time_limit=TIME_LIMIT, check=True)
