# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that carry a probe's marker in their environment: found, awaited, and ended.

The marker finds what a process group cannot: a tracee whose tracer was killed, and what went into a session of its
own. A process is held by its pidfd before its environment is read, so that no other one of the same number can be
meant.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from droiddeck_session.backends.confinement import MARKER
from droiddeck_session.processes import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterator

# A process may fork while it is looked for; each round ends all of the one before.
_ROUNDS: Final = 20
_DEATH_MS: Final = 1000


def end_marked(token: str) -> None:
    """Kill every process that carries this token, and wait until each is gone."""
    with uninterrupted():
        for _ in range(_ROUNDS):
            with contextlib.ExitStack() as held:
                found = list(_hold(token, held))
                for pidfd in found:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                _await_ends(found, _DEATH_MS)
            if not found:
                return


def all_ended(token: str, *, within: float) -> bool:
    """Tell whether every process that carries this token ends by itself in so many seconds."""
    deadline = time.monotonic() + within
    with contextlib.ExitStack() as held:
        found = list(_hold(token, held))
        return _await_ends(found, int(max(0.0, deadline - time.monotonic()) * 1000))


def _hold(token: str, held: contextlib.ExitStack) -> Iterator[int]:
    entry = f"{MARKER}={token}".encode()
    for name in os.listdir("/proc"):  # noqa: PTH208 - names alone are wanted, thousands of them
        if not name.isdecimal():
            continue
        try:
            pidfd = os.pidfd_open(int(name))
        except OSError:
            continue
        if entry in _environment(name):
            held.callback(os.close, pidfd)
            yield pidfd
        else:
            os.close(pidfd)


def _environment(name: str) -> list[bytes]:
    try:
        return Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _await_ends(pidfds: list[int], limit_ms: int) -> bool:
    deadline = time.monotonic() + limit_ms / 1000
    poll = select.poll()
    for pidfd in pidfds:
        poll.register(pidfd, select.POLLIN)
    left = len(pidfds)
    while left and (rest := deadline - time.monotonic()) > 0:
        for pidfd, _ in poll.poll(rest * 1000):
            poll.unregister(pidfd)
            left -= 1
    return not left
