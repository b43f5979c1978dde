# SPDX-License-Identifier: GPL-3.0-or-later
"""How a process ended, read from the kernel: exit status or signal, also for a process that is not our child.

A wrapper between us and the main program tells only what it makes of the status (bwrap: 128+n for a signal; stock
proot: the status of whichever process ended last). Linux 6.15 keeps the real status behind a pidfd for anyone who
holds one.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
from dataclasses import dataclass
from typing import Final

from droiddeck_session.errors import EXIT_SIGNAL_BASE

# linux/pidfd.h: PIDFD_GET_INFO = _IOWR(0xFF, 11, struct pidfd_info) of PIDFD_INFO_SIZE_VER0, PIDFD_INFO_EXIT.
_PIDFD_INFO_SIZE: Final = 64
_PIDFD_GET_INFO: Final = (3 << 30) | (_PIDFD_INFO_SIZE << 16) | (0xFF << 8) | 11
_PIDFD_INFO_EXIT: Final = 1 << 3
_EXIT_CODE_OFFSET: Final = 60


@dataclass(frozen=True)
class WaitStatus:
    """An exit status, or the signal that ended the process (then `exited` is None)."""

    exited: int | None
    signal: int | None = None

    @property
    def status(self) -> int:
        """The one number a shell would show: the exit status, or 128+n."""
        return EXIT_SIGNAL_BASE + self.signal if self.signal is not None else self.exited or 0

    def in_words(self) -> str:
        """Return `exit status 3` or `killed by SIGTERM (signal 15)`."""
        if self.signal is None:
            return f"exit status {self.exited}"
        return f"killed by {signal_name(self.signal)} (signal {self.signal})"


def signal_name(signum: int) -> str:
    """Return `SIGTERM`, or `SIGRTMIN+n` for a signal without a name of its own."""
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"SIGRTMIN+{signum - signal.SIGRTMIN}"


def has_ended(pidfd: int) -> bool:
    """Whether the process behind a pidfd has ended (it may not have been waited for yet)."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def wait_child(pidfd: int) -> WaitStatus | None:
    """Reap a child that has ended; None when it has not, or is not our child."""
    try:
        result = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        return None
    if result is None:
        return None
    if result.si_code == os.CLD_EXITED:
        return WaitStatus(result.si_status)
    return WaitStatus(None, result.si_status)


def exit_info(pidfd: int) -> WaitStatus | None:
    """Return how anybody's process ended, once its parent has reaped it; None where the kernel does not tell."""
    info = bytearray(_PIDFD_INFO_SIZE)
    struct.pack_into("=Q", info, 0, _PIDFD_INFO_EXIT)
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, info)
    except OSError:
        return None
    (mask,) = struct.unpack_from("=Q", info, 0)
    if not mask & _PIDFD_INFO_EXIT:
        return None
    (code,) = struct.unpack_from("=i", info, _EXIT_CODE_OFFSET)
    return WaitStatus(os.WEXITSTATUS(code)) if os.WIFEXITED(code) else WaitStatus(None, os.WTERMSIG(code))
