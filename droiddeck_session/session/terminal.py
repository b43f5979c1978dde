# SPDX-License-Identifier: GPL-3.0-or-later
"""Job control: the program's group owns the terminal while it runs, as under a shell.

- Handed over at the start when our group is the terminal's foreground group. In a pipeline (stdin or stdout is a
  pipe) our group holds other programs too, such as a pager; there the program gets the terminal only when it has
  reached for it (SIGTTIN, SIGTTOU).
- When the program's group is stopped (Ctrl-Z), the terminal is taken back and our group is stopped with the same
  signal, the rest of a pipeline or a script with us, so that the shell sees a stopped job; `fg` hands it over again.
  In an orphaned group, which the kernel does not stop, the program goes on.
- At the end the terminal is taken back. Its attributes are put back to those of the start only when the program did
  not end by itself (a signal ended it): what `stty` sets is meant to stay. Shells do the same.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import stat
import termios
from typing import TYPE_CHECKING, Final, Self

import anyio

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_TERMINAL: Final = "/dev/tty"
# The stops of job control. SIGSTOP is none: whoever sent it to the program did not mean us.
JOB_STOPS: Final = frozenset({signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
REACHED_FOR_TERMINAL: Final = frozenset({signal.SIGTTIN, signal.SIGTTOU})


class Terminal:
    """The controlling terminal of this process.

    Args:
        descriptor: an open descriptor of it; closed by `close`.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._given: int | None = None
        self._due = not (_is_pipe(0) or _is_pipe(1))
        with contextlib.suppress(termios.error):
            self._attributes = termios.tcgetattr(descriptor)

    @classmethod
    def controlling(cls) -> Self | None:
        """Open the controlling terminal; None where there is none."""
        try:
            return cls(os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY))
        except OSError:
            return None

    @property
    def is_ours(self) -> bool:
        """Whether our process group is the one in the foreground."""
        return self._foreground() == os.getpgrp()

    @property
    def given(self) -> bool:
        """Whether the program has it now, as far as we gave it."""
        return self._given is not None

    def to_start_with(self) -> int | None:
        """Return the descriptor whose foreground group the program shall become at its start, or None."""
        return self.descriptor if self._due and self.is_ours else None

    def note_given(self, group: int) -> None:
        """Note that a program was started as the foreground group."""
        self._given = group

    def note_reached_for(self) -> None:
        """Note that the program wants it: from now on it is handed over in a pipeline too."""
        self._due = True

    def give(self, group: int) -> None:
        """Make a process group the foreground group, if ours is it now and the program's shall be."""
        if self._due and self.is_ours and self._set_foreground(group):
            self._given = group

    def take_back(self, *, members: Collection[int]) -> int | None:
        """Make our group the foreground group again and return the one that had been it.

        Not if a shell has taken the terminal meanwhile: only from the group it was given to, from a group in
        `members`, or from one that is gone.
        """
        holder = self._foreground()
        if self._given is None or holder is None:
            return None
        if holder == self._given or holder in members or not _exists(holder):
            self._set_foreground(os.getpgrp())
            self._given = None
            return holder
        self._given = None
        return None

    def restore(self) -> None:
        """Put the attributes back to what they were at the start, if the terminal is ours."""
        if self.is_ours:
            with contextlib.suppress(termios.error, AttributeError), _without_ttou():
                termios.tcsetattr(self.descriptor, termios.TCSANOW, self._attributes)

    async def hung_up(self) -> None:
        """Return when the terminal is gone. The kernel tells only its session's leader and the foreground group."""
        with select.epoll() as watch:
            # No events asked for: what the user types stays the program's, EPOLLHUP is always reported.
            watch.register(self.descriptor, 0)
            await anyio.wait_readable(watch.fileno())

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)

    def _foreground(self) -> int | None:
        try:
            return os.tcgetpgrp(self.descriptor)
        except OSError:
            return None

    def _set_foreground(self, group: int) -> bool:
        try:
            with _without_ttou():
                os.tcsetpgrp(self.descriptor, group)
        except OSError:
            return False
        return True


def stop_ourselves(signum: int, *, with_group: bool) -> bool:
    """Stop by a job-control signal; False when the kernel did not, because our group is orphaned.

    Returns after SIGCONT, which is then delivered to its receiver as well.

    Args:
        signum: the signal.
        with_group: whether the others of our process group have still to get it.
    """
    receiver = signal.signal(signum, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
    try:
        if with_group:
            os.killpg(0, signum)
        else:
            os.kill(os.getpid(), signum)
        return signal.SIGCONT in signal.sigpending()
    finally:
        signal.signal(signum, receiver)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextlib.contextmanager
def _without_ttou() -> Iterator[None]:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _is_pipe(descriptor: int) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
