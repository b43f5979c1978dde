# SPDX-License-Identifier: GPL-3.0-or-later
"""What may differ where ids are emulated: the truth is a user namespace, whose root has what no tracer can give.

One row per kind of answer, each with its reason. Everything else must be equal there as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from droiddeck_session.diagnostics.verify.run import Answer


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """One kind of answer; all patterns must match whole texts.

    Attributes:
        reason: why the tracer cannot answer as the namespace does.
        case: ids of the cases.
        expected: what the namespace answers.
        got: what may be answered instead, nothing having changed.
    """

    reason: str
    case: re.Pattern[str]
    expected: re.Pattern[str]
    got: re.Pattern[str]


# /proc/sys/kernel/overflowuid and overflowgid, which the kernel shows for ids that a namespace does not map.
_UNMAPPED: Final = " 65534:65534 "
_OWNER: Final = re.compile(r" \d+:\d+ ")
AGREED: Final = (
    Agreed(
        reason="the namespace maps one id alone and refuses to give a file to another; a tracer pretends to",
        case=re.compile(r"l?chown[:@].*|fchownat(-nofollow)?[:@].*", re.DOTALL),
        expected=re.compile("EINVAL"),
        got=re.compile("0"),
    ),
    Agreed(
        reason="the namespace's root has CAP_DAC_OVERRIDE over its own files; a tracer has what the mode gives",
        case=re.compile(r".*(closed(?!-folder)|read-only).*", re.DOTALL),
        expected=re.compile(r"0|ENODATA|(\d+ file|watch \d+ of) <root/ordinary/(closed|read-only)>.*"),
        got=re.compile("EACCES"),
    ),
    Agreed(
        reason="the same capability over the caller's own files of procfs",
        case=re.compile(r"access-w:/proc/(self/fdinfo/\d+|mounts)"),
        expected=re.compile("0"),
        got=re.compile("EACCES"),
    ),
)


def is_agreed(case: str, expected: Answer, got: Answer) -> bool:
    """Return whether a tracer may answer so under emulated ids."""
    if got.changes:
        return False
    return any(
        row.case.fullmatch(case) and row.expected.fullmatch(expected.text) and row.got.fullmatch(got.text)
        for row in AGREED
    )


def is_owner_alone(expected: Answer, got: Answer) -> bool:
    """Return whether all is equal but an owner whom the namespace has no id for; a tracer shows him as he is."""
    if _UNMAPPED not in expected.text or expected.changes != got.changes:
        return False
    return _OWNER.sub(_UNMAPPED, got.text, count=1) == expected.text
