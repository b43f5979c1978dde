# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run beside a session's main program, and are waited for by whoever started them."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import anyio

from droiddeck_session.processes import spawn
from droiddeck_session.session.wait_status import WaitStatus, wait_child

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from droiddeck_session.session.supervisor import Supervisor


async def run_beside(
    supervisor: Supervisor, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, stdio: tuple[int, int, int]
) -> WaitStatus:
    """Run a program and return how it ended; it ends with the session at the latest.

    Args:
        supervisor: the session's, which would reap it as an orphan if it did not know of it.
        argv: program and arguments.
        env: the whole environment.
        cwd: host path of its working directory.
        stdio: its descriptors 0 to 2; they stay the caller's.

    Raises:
        ProcessError: it cannot be started.
    """
    program = spawn(argv, env=env, cwd=cwd, stdio=stdio)
    pid = program.process.pid
    supervisor.companions.add(pid)
    try:
        await anyio.wait_readable(program.pidfd)
        status = wait_child(program.pidfd) or WaitStatus(None, signal.SIGKILL)
        # Popen must not wait for it again, nor for whoever gets its pid.
        program.process.returncode = status.status
    finally:
        supervisor.companions.discard(pid)
        os.close(program.pidfd)
    return status
