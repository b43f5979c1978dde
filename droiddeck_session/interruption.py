# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to end (INT, TERM, HUP) that come while a verb works: what it has begun is tidied up first.

A verb calls `tidy_up_first` once its modules are imported, before it begins anything. Until then a request has its
default effect: an exception in the middle of an import can leave half a module, or be taken for something else. A
session's supervisor receives its signals itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, Final

from droiddeck_session.errors import EXIT_SIGNAL_BASE

if TYPE_CHECKING:
    from types import FrameType

REQUESTS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STDERR: Final = 2
_come: list[int] = []


def tidy_up_first(*, say_so: bool = False) -> None:
    """Make the first request end this process by SystemExit with 128+n; no other cuts the tidying short.

    systemd sends TERM and HUP, timeout(1) its signal twice. What the caller ignores stays ignored.

    Args:
        say_so: tell the person that the tidying has begun: for a verb where it can take long.
    """
    requests = [number for number in REQUESTS if signal.getsignal(number) is not signal.SIG_IGN]

    def end(signum: int, _frame: FrameType | None) -> None:
        _come.append(signum)
        for number in requests:
            # Not SIG_IGN: of one that has come already Python would complain.
            signal.signal(number, lambda _signum, _frame: None)
        if say_so:
            # Not by a stream: what was interrupted may be just writing to it.
            with contextlib.suppress(OSError):
                os.write(_STDERR, f"droiddeck-session: {signal.Signals(signum).name}: cleaning up\n".encode())
        sys.exit(EXIT_SIGNAL_BASE + signum)

    for number in requests:
        signal.signal(number, end)


def asked() -> int | None:
    """Return the request that has come, if one has."""
    return _come[0] if _come else None


def end_if_asked() -> None:
    """End with 128+n if a request has come, whatever a library or a failing child has made of it."""
    if _come:
        sys.exit(EXIT_SIGNAL_BASE + _come[0])
