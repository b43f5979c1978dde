# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals to the supervisor, and what they mean for the session.

| signal | the first | one more, of these four |
|---|---|---|
| TERM, HUP | to the program's process group; KILL to the session after the grace time | KILL to the session at once |
| INT, QUIT | to the program's process group, which may ignore it; nothing else | KILL to the session at once |
| USR1, USR2, WINCH, CONT | to the program's process group, each time | |
| TSTP | to the program's process group, then the supervisor stops itself | |

Signals that come within 0.1 s of each other are one request: `timeout` sends its signal twice, systemd sends TERM and
HUP. Once the main program has ended, any of the first four ends what is left at once. A terminal that hangs up is a
HUP. A HUP that was ignored when we started (nohup) stays ignored, by us and by the program. Everything else that we
inherited ignored or blocked is put back to its default: SIGCHLD because waiting would fail, INT and QUIT because a
shell's `&` means the terminal's Ctrl-C, which does not reach the program's group anyway.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import signal
from typing import TYPE_CHECKING, Final, Protocol, Self

import anyio

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from droiddeck_session.session.terminal import Terminal

# As a request to end: with a time limit, or left to the program.
STOP_REQUESTS: Final = frozenset({signal.SIGTERM, signal.SIGHUP})
ENDING: Final = STOP_REQUESTS | {signal.SIGINT, signal.SIGQUIT}
RELAYED: Final = frozenset({signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGCONT, signal.SIGTSTP})
RECEIVED: Final = ENDING | RELAYED | {signal.SIGCHLD}
ONE_REQUEST: Final = 0.1
# Ignored by Python for itself; subprocess gives programs the default again.
_PYTHONS_OWN: Final = frozenset({signal.SIGPIPE, signal.SIGXFSZ})


class SignalTarget(Protocol):
    """What a session does with signals; the supervisor is one."""

    def end_by(self, signum: int) -> None:
        """One of ENDING arrived."""

    def relay(self, signum: int) -> None:
        """One of RELAYED arrived."""

    def hang_up(self) -> None:
        """The terminal is gone."""

    def children_changed(self) -> None:
        """SIGCHLD: a child ended or stopped, or an orphan came to us."""


def reset() -> frozenset[int]:
    """Undo what a careless parent left: blocked signals, and ignored ones but HUP. Return those that stay ignored.

    What is for the session is blocked until `received`, which must follow: a signal that comes in between is not lost.
    """
    left: set[int] = set()
    for signum in sorted(signal.valid_signals() - _PYTHONS_OWN - {signal.SIGKILL, signal.SIGSTOP}):
        if signal.getsignal(signum) is not signal.SIG_IGN:
            continue
        if signum == signal.SIGHUP:
            left.add(signum)
        else:
            signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ENDING | RELAYED)
    return frozenset(left)


class Arrivals:
    """The signals that have arrived, in their order; of one that waits already there is only one, as in the kernel.

    asyncio's own handlers pass each signal as a byte through a pipe: when a thousand children end at once it is full,
    and what comes then, a request to end too, is lost.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: collections.deque[signal.Signals] = collections.deque()
        self._arrived = anyio.Event()

    def handle(self, signum: int, _frame: FrameType | None) -> None:
        """Note a signal; a handler for signal.signal(). Python calls it between any two instructions."""
        if signum not in self._waiting:
            self._waiting.append(signal.Signals(signum))
        # Wakes the loop as well, which Python's own call of this handler does not.
        self._loop.call_soon_threadsafe(self._arrived.set)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> signal.Signals:
        while not self._waiting:
            self._arrived = anyio.Event()
            if not self._waiting:
                await self._arrived.wait()
        return self._waiting.popleft()


@contextlib.contextmanager
def received(ignored: frozenset[int]) -> Iterator[Arrivals]:
    """Receive the signals that concern a session, but those that stay ignored.

    Afterwards what would end us is ignored: the process only tidies up, and must not die of an echo meanwhile. QUIT is
    left as a way out, and job control.
    """
    over = (ENDING | {signal.SIGUSR1, signal.SIGUSR2}) - ignored - {signal.SIGQUIT}
    arrivals = Arrivals()
    for signum in RECEIVED - ignored:
        signal.signal(signum, arrivals.handle)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING | RELAYED)
    try:
        yield arrivals
    finally:
        # One for which Python has still to call the handler would be lost with a complaint.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, RECEIVED)
        for signum in RECEIVED - ignored:
            # No handler of Python's, which its shutdown would replace by the default.
            signal.signal(signum, signal.SIG_IGN if signum in over else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


async def deliver(arrivals: Arrivals, target: SignalTarget) -> None:
    """Hand each signal that arrives to the session."""
    async for signum in arrivals:
        if signum == signal.SIGCHLD:
            target.children_changed()
        elif signum in ENDING:
            target.end_by(signum)
        else:
            target.relay(signum)


async def deliver_hang_up(terminal: Terminal, target: SignalTarget) -> None:
    """Tell the session when its terminal is gone."""
    await terminal.hung_up()
    target.hang_up()


class Requests:
    """Tells a second request to end from an echo of the first."""

    def __init__(self) -> None:
        self._last: dict[int, float] = {}
        self._hung_up = False

    def is_second(self, signum: int) -> bool | None:
        """Note a request; True for a second one, False for a first, None for an echo that needs no answer."""
        now = anyio.current_time()
        earlier = [now - then for then in self._last.values()]
        echo = now - self._last.get(signum, -ONE_REQUEST) < ONE_REQUEST or (signum == signal.SIGHUP and self._hung_up)
        self._last[signum] = now
        if echo:
            return None
        return any(age >= ONE_REQUEST for age in earlier)

    @property
    def any(self) -> bool:
        """Whether one has come."""
        return bool(self._last)

    def seen(self, signum: int) -> bool:
        """Whether this signal has come already."""
        return signum in self._last

    def ignore_more_hups(self) -> None:
        """Take every HUP from now on for the echo of a lost terminal: the kernel and the shell send one each."""
        self._hung_up = True
