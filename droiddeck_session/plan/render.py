# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan for people, and a command line as the one string that Android's HostProcess takes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from droiddeck_session.errors import PlanError
from droiddeck_session.printable import exact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from droiddeck_session.plan.model import Bind, Plan


def hostprocess(argv: Sequence[str]) -> str:
    """Return a command line as HostProcess splits it: at spaces, a backslash takes the next character as it is.

    Raises:
        PlanError: an argument is empty, which that form cannot hold.
    """
    for number, argument in enumerate(argv):
        if not argument:
            before = f", after {argv[number - 1]!r}" if number else ""
            raise PlanError(
                code="EMPTY_ARGUMENT",
                message=f"--hostprocess cannot hold the empty argument at position {number}{before}",
                hint="use --shell, or leave that argument out",
            )
    return " ".join(argument.replace("\\", "\\\\").replace(" ", "\\ ") for argument in argv)


def split_hostprocess(text: str) -> list[str]:
    """Return the arguments that HostProcess makes of its string: the inverse of `hostprocess`."""
    found: list[str] = []
    current = ""
    characters = iter(text)
    for character in characters:
        if character == " ":
            found.append(current)
            current = ""
        else:
            current += next(characters, "") if character == "\\" else character
    return [argument for argument in (*found, current) if argument]


def render(plan: Plan) -> str:
    """Return the plan as lines for a person: what is bound, set and run, each with its reason and origin."""
    return "\n".join(exact(line) for line in _lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    identity = f"{plan.identity.uid}:{plan.identity.gid}{' (emulated)' if plan.identity.emulated else ''}"
    yield f"{plan.kind} in guest {plan.guest.name} ({plan.guest.root}{', read-only' if plan.guest.read_only else ''})"
    yield from _table(
        [
            ("backend", plan.backend),
            ("ids", identity),
            ("host name", plan.nodename or "the host's"),
            ("kernel", plan.kernel_release or "the host's"),
            ("folder", plan.cwd),
            ("fast path", "on" if plan.fast_path.enabled else f"off: {plan.fast_path.why_off}"),
            *((("stand-ins", ", ".join(plan.stand_ins)),) if plan.stand_ins else ()),
            ("runs", shlex.join(plan.argv)),
        ]
    )
    yield from _section("binds, guest <- host", [(_bind(bind), bind.reason, bind.origin) for bind in plan.binds])
    yield from _section(
        "left out", [(f"{bind.guest} <- {bind.host}", bind.why, bind.origin) for bind in plan.dropped]
    )  # fmt: skip
    yield from _section(
        "environment",
        [(f"{entry.name}={entry.value}", entry.reason, entry.origin) for entry in plan.environment],
    )
    made = [(point.guest, "a folder" if point.directory else "a file") for point in plan.mount_points]
    yield from _section("made in the rootfs to mount on", made)


def _bind(bind: Bind) -> str:
    marks = [word for word, holds in (("required", bind.required), ("read-only", bind.read_only)) if holds]
    same = bind.guest if bind.guest == bind.host else f"{bind.guest} <- {bind.host}"
    return f"{same} ({', '.join(marks)})" if marks else same


def _section(title: str, rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield title
    for first, *rest in rows:
        yield f"  {first}"
        yield f"      {'; '.join(text for text in rest if text)}"


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (f"  {name:<10} {value}" for name, value in rows)
