# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of a session and what leads from one to the next. Pure: what is to be done comes back as data.

A place where a session runs (the Steam client's of a guest, say) sees one session after another; each start is a new
**generation**. What a generation tells after the next has begun is stale and changes nothing, and no generation begins
before the tree of the one before it is known to be gone: never two live trees in one place.

```
            start            begun           hook
stopped ──────────> preparing ──> starting ──────> ready
failed                  │            │ frozen ┐      │ frozen
   ^                    │            v        v      v
   │                    │         suspended <────────┘      thawed leads back to starting or ready
   │       ended        v            v stop, lost
   └──────────────── stopping <──────┘
```
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

State = Literal["idle", "preparing", "starting", "ready", "suspended", "stopping", "stopped", "failed"]
# What a user asks for.
Request = Literal["start", "stop", "kill", "suspend", "resume"]
# What a generation tells of itself. `lost`: its supervisor died without a word, its tree may live; `ended` and
# `failed` come only when nothing of its tree is left, whoever saw to that.
Report = Literal["begun", "ready", "frozen", "thawed", "stopping", "lost", "ended", "failed"]
# What is to be done to a generation.
Action = Literal["spawn", "stop", "kill", "suspend", "resume", "recover"]

OVER: Final[frozenset[State]] = frozenset({"idle", "stopped", "failed"})
LIVE: Final[frozenset[State]] = frozenset({"preparing", "starting", "ready", "suspended", "stopping"})


@dataclass(frozen=True)
class Life:
    """Where a session stands.

    Attributes:
        generation: number of the last start; 0 before the first.
        state: its state.
        was_ready: whether this generation has been ready, which a suspended one returns to.
    """

    generation: int = 0
    state: State = "idle"
    was_ready: bool = False


@dataclass(frozen=True)
class Refusal:
    """Why a request makes no sense now; `code` is stable API."""

    code: str
    message: str


@dataclass(frozen=True)
class Step:
    """What follows: the new life, what is to be done to its generation, and why a request is refused."""

    life: Life
    action: Action | None = None
    refusal: Refusal | None = None


# Whatever the state of a live session, these reports lead there.
_ENDINGS: Final[dict[Report, State]] = {
    "stopping": "stopping", "lost": "stopping", "ended": "stopped", "failed": "failed",
}  # fmt: skip
# These are heeded in some states only: what a session tells of its beginning is late once it is asked to end.
_PROGRESS: Final[dict[tuple[State, Report], State]] = {
    ("preparing", "begun"): "starting",
    ("starting", "ready"): "ready",
    ("starting", "frozen"): "suspended",
    ("ready", "frozen"): "suspended",
}


def ask(life: Life, request: Request) -> Step:
    """Return what a request leads to. A stop that is under way takes another one as the same."""
    if request == "start":
        return _start(life)
    if request in {"stop", "kill"}:
        return _end(life, request)
    return _freeze(life, request)


def tell(life: Life, generation: int, report: Report) -> Step:
    """Return what a report of a generation leads to; nothing, if that one is over or another has begun since."""
    if generation != life.generation or life.state in OVER:
        return Step(life)
    if report in _ENDINGS:
        return Step(replace(life, state=_ENDINGS[report]), "recover" if report == "lost" else None)
    if report == "ready" and life.state in {"starting", "suspended"}:
        life = replace(life, was_ready=True)
    if report == "thawed" and life.state == "suspended":
        return Step(replace(life, state="ready" if life.was_ready else "starting"))
    return Step(replace(life, state=_PROGRESS.get((life.state, report), life.state)))


def _start(life: Life) -> Step:
    if life.state in OVER:
        return Step(Life(generation=life.generation + 1, state="preparing"), "spawn")
    return _refuse(life, "SESSION_ACTIVE", "a session of this kind runs already in this guest")


def _end(life: Life, request: Request) -> Step:
    if life.state in OVER:
        return _refuse(life, "NO_ACTIVE_SESSION", "no session runs")
    if life.state == "stopping" and request == "stop":
        return Step(life)
    return Step(replace(life, state="stopping"), "kill" if request == "kill" else "stop")


def _freeze(life: Life, request: Request) -> Step:
    if request == "resume":
        if life.state == "suspended":
            return Step(life, "resume")
        return _refuse(life, "SESSION_NOT_SUSPENDED", "only a suspended session can be resumed")
    if life.state == "suspended":
        return Step(life)
    if life.state in {"starting", "ready"}:
        return Step(life, "suspend")
    return _refuse(life, "SESSION_NOT_READY", "only a session that runs can be suspended")


def _refuse(life: Life, code: str, message: str) -> Step:
    return Step(life, refusal=Refusal(code, message))
