# SPDX-License-Identifier: GPL-3.0-or-later
"""A session in the foreground of this process: its terminal, its signals, and the record of how it ended."""

from __future__ import annotations

import ctypes
import functools
import signal
from typing import TYPE_CHECKING, Any, Final

import anyio

from droiddeck_session.errors import DroiddeckError
from droiddeck_session.processes import hold_closed_descriptors
from droiddeck_session.session import signals
from droiddeck_session.session.control import DrivenSession
from droiddeck_session.session.readiness import become_ready
from droiddeck_session.session.supervisor import Supervisor
from droiddeck_session.session.terminal import Terminal
from droiddeck_session.session.wait_status import signal_name

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from droiddeck_session.backends.interface import HostCommand
    from droiddeck_session.plan.capabilities import Capabilities
    from droiddeck_session.session.control import Control, Entry
    from droiddeck_session.session.ending import Ending
    from droiddeck_session.session.folder import SessionFolder
    from droiddeck_session.settings import SessionSettings

# linux/prctl.h
_PR_SET_CHILD_SUBREAPER: Final = 36


def supervise(
    command: HostCommand,
    *,
    capabilities: Capabilities,
    token: str,
    folder: SessionFolder,
    settings: SessionSettings,
    control: Control | None = None,
    entry: Entry | None = None,
) -> Ending:
    """Run a session in the foreground of this process, which does nothing else, and record how it ended.

    Afterwards TERM, HUP and INT are ignored here: what is left to do is short, and the status is known.

    Args:
        command: what to start.
        capabilities: what the backend's probe showed.
        token: the session's membership token, which `command` puts into the guest's environment.
        folder: the session's folder.
        settings: grace and linger time.
        control: who drives the session besides the signals to this process.
        entry: how another program runs in the session's guest.

    Raises:
        DroiddeckError: the command cannot be started, or the folder cannot be written.
    """
    hold_closed_descriptors()
    ignored = signals.reset()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    terminal = Terminal.controlling()
    try:
        folder.note(token)
        supervisor = Supervisor(
            command, capabilities=capabilities, token=token, folder=folder, settings=settings, terminal=terminal
        )
        besides: list[Callable[[], Coroutine[Any, Any, None]]] = [
            functools.partial(become_ready, supervisor, folder, settings)
        ]
        if control and entry:
            driven = DrivenSession(supervisor, folder, token=token, entry=entry, client_limit=settings.client_limit)
            besides.append(functools.partial(control.drive, driven))
        ending = anyio.run(_in_foreground, supervisor, terminal, ignored, besides)
    except DroiddeckError as error:
        folder.record("guest.start_failed", code=error.code)
        folder.failed(error.code, error.message)
        raise
    finally:
        if terminal:
            terminal.close()
    _record(ending, folder)
    return ending


async def _in_foreground(
    supervisor: Supervisor,
    terminal: Terminal | None,
    ignored: frozenset[int],
    besides: list[Callable[[], Coroutine[Any, Any, None]]],
) -> Ending:
    with signals.received(ignored) as arrivals:
        supervisor.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(signals.deliver, arrivals, supervisor)
            if terminal and signal.SIGHUP not in ignored:
                tasks.start_soon(signals.deliver_hang_up, terminal, supervisor)
            for beside in besides:
                tasks.start_soon(beside)
            ending = await supervisor.run()
            tasks.cancel_scope.cancel()
    return ending


def _record(ending: Ending, folder: SessionFolder) -> None:
    told = {
        "status": ending.status,
        "signal": signal_name(ending.signal) if ending.signal is not None else None,
        "main_status_known": ending.main_status_known,
    }
    if ending.failure:
        folder.failed(ending.failure, ending.how, survivors=ending.survivors, reason=ending.reason, **told)
    else:
        folder.stopped(how=ending.how, **told)
    if ending.reason:
        folder.log.warning(ending.reason)
