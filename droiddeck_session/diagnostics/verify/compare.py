# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs of `verify` beside each other: what is equal, what was refused as agreed, and what differs, by kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from droiddeck_session.diagnostics.verify.agreed import is_agreed, is_owner_alone

if TYPE_CHECKING:
    from droiddeck_session.diagnostics.verify.run import Answer, Run

NOT_ASKED: Final = "(not answered)"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One case that two backends answered differently."""

    case: str
    path_class: str
    expected: tuple[str, ...]
    got: tuple[str, ...]

    @property
    def call(self) -> str:
        """The call or what was tried: the first word of the case's id."""
        return self.case.partition(":")[0].partition("@")[0]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What a backend answered, against the truth.

    Attributes:
        compared: number of cases.
        refused: of those, how many a tracer refused as it may.
    """

    backend: str
    compared: int
    refused: int
    differences: tuple[Difference, ...]
    seconds: float
    ending: str
    command: str

    @property
    def equal(self) -> bool:
        """Whether every answer is the truth's, or an agreed refusal."""
        return not self.differences and not self.ending

    def groups(self) -> dict[tuple[str, str], list[Difference]]:
        """Return the differences by call and class of path."""
        found: dict[tuple[str, str], list[Difference]] = {}
        for difference in self.differences:
            found.setdefault((difference.call, difference.path_class), []).append(difference)
        return found


def compare(truth: Run, other: Run, *, emulated: bool = False) -> Comparison:
    """Compare a run with the truth, case by case.

    Args:
        truth: what the kernel answered.
        other: what is compared with it.
        emulated: the ids are not the caller's, so that what agreed.py lists may differ.
    """
    refused = 0
    differences = []
    for case, expected in truth.answers.items():
        got = other.answers.get(case)
        if got is not None and expected.refusal and got.text == expected.refusal and not got.changes:
            refused += expected.text != expected.refusal
        elif _told(got) == _told(expected) or (emulated and got is not None and is_owner_alone(expected, got)):
            continue
        elif emulated and got is not None and is_agreed(case, expected, got):
            refused += 1
        else:
            differences.append(
                Difference(case=case, path_class=expected.path_class, expected=_told(expected), got=_told(got))
            )
    return Comparison(
        backend=other.backend,
        compared=len(truth.answers),
        refused=refused,
        differences=tuple(differences),
        seconds=other.seconds,
        ending=other.ending,
        command=other.command,
    )


def _told(answer: Answer | None) -> tuple[str, ...]:
    return (answer.text, *answer.changes) if answer is not None else (NOT_ASKED,)
