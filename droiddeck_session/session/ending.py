# SPDX-License-Identifier: GPL-3.0-or-later
"""How a session ended: from what was seen of its processes to one status, a failure code and words. Pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from droiddeck_session.errors import EXIT_OWN_FAILURE
from droiddeck_session.session.wait_status import WaitStatus

if TYPE_CHECKING:
    from droiddeck_session.plan.capabilities import Capabilities

Failure = Literal["", "GUEST_EXIT", "NOT_STARTED", "TRACER_DIED", "STATUS_LOST", "SURVIVORS"]
_KILLED: Final = (
    "the main program was killed by SIGKILL, which we did not send: by itself, by a person, for lack of memory, or on "
    "Android 12 and later by the limit on child processes, which the developer options can turn off"
)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a session ended.

    Attributes:
        status: what a wrapping verb exits with: the main program's, 128+n for signal n, 125 for a failure of ours.
        signal: the signal that ended the main program; None for an exit (`exit 143` too) or where a wrapper hides it.
        main_status_known: whether the main program's own ending was seen, not only what a wrapper makes of it.
        how: the ending in words, for the record.
        reason: what a person must be told besides the status; often empty.
        survivors: `name (pid)` of the members that could not be ended.
        failure: code of what went wrong; empty for status 0 and for a session that was asked to end.
    """

    status: int
    signal: int | None = None
    main_status_known: bool = True
    how: str
    reason: str = ""
    survivors: tuple[str, ...] = ()
    failure: Failure = ""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the supervisor saw.

    Attributes:
        main: the main program's own ending; None where the kernel did not tell.
        wrapper: the ending of the process between; None where there is none, or it still runs.
        had_leftovers: whether other members ran when the main program ended.
        never_started: the wrapper says that it could not set up the guest; what it printed says why.
        tracer_died: a tracer ended before its main program.
        killed: we sent KILL.
        stop_requested: somebody asked the session to end.
        survivors: `name (pid)` of the members that could not be ended.
    """

    main: WaitStatus | None
    wrapper: WaitStatus | None
    had_leftovers: bool
    never_started: bool
    tracer_died: bool
    killed: bool
    stop_requested: bool
    survivors: tuple[str, ...]


def conclude(seen: Seen, capabilities: Capabilities) -> Ending:
    """Return how the session ended."""
    wrapper = seen.wrapper.in_words() if seen.wrapper else "still running"
    if seen.survivors:
        return _failure("SURVIVORS", f"these processes could not be ended: {', '.join(seen.survivors)}", seen)
    if seen.never_started:
        why = f"the {capabilities.backend} backend could not set up the guest ({wrapper}); its own words stand above"
        return _failure("NOT_STARTED", why, seen)
    if seen.tracer_died:
        why = f"the {capabilities.backend} tracer died ({wrapper}); what it left of the session was ended"
        return _failure("TRACER_DIED", why, seen)
    # The wrapper tells the main program's status if it always does, or if nothing can have ended later.
    main = seen.main or _told_by_wrapper(seen, capabilities)
    if main is None:
        why = f"the main program's exit status is lost: the {capabilities.backend} backend "
        if capabilities.main_status:
            return _failure("STATUS_LOST", f"{why}ended before it could tell ({wrapper})", seen)
        return _failure("STATUS_LOST", f"{why}tells the status of the process that ended last ({wrapper})", seen)
    return Ending(
        status=main.status,
        signal=main.signal,
        main_status_known=seen.main is not None,
        how=main.in_words(),
        reason=_KILLED if main.signal == signal.SIGKILL and not seen.killed else "",
        failure="" if main.status == 0 or seen.stop_requested else "GUEST_EXIT",
    )


def _told_by_wrapper(seen: Seen, capabilities: Capabilities) -> WaitStatus | None:
    """Return what the wrapper's ending says of the main program's; None where it says nothing."""
    if seen.killed:
        # Every member got KILL from us; what a tracer makes of that is its own affair (proot 5.1.0: 0).
        return WaitStatus(None, signal.SIGKILL)
    if seen.wrapper is not None and seen.wrapper.signal == signal.SIGKILL:
        return None  # the wrapper was killed: that is its own ending
    return seen.wrapper if capabilities.main_status or not seen.had_leftovers else None


def _failure(code: Failure, why: str, seen: Seen) -> Ending:
    return Ending(
        status=EXIT_OWN_FAILURE,
        signal=seen.main.signal if seen.main else None,
        main_status_known=seen.main is not None,
        how=why,
        reason=why,
        survivors=seen.survivors,
        failure=code,
    )
