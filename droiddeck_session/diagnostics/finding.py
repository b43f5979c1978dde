# SPDX-License-Identifier: GPL-3.0-or-later
"""What a check of `doctor` gets to see and what it says: one finding is one line of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from droiddeck_session.errors import DroiddeckError
    from droiddeck_session.paths import Directories
    from droiddeck_session.settings import LoadedSettings

# ok: as it should be. warn: only some sessions need what is missing. fail: no session, or not the default one.
# skip: does not matter on this machine.
Status = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check found.

    Attributes:
        id: stable name, `subject` or `subject.part`.
        evidence: what was seen, in words that name the thing.
        fix: what to do; empty where nothing is to be done.
    """

    id: str
    status: Status
    evidence: str
    fix: str = ""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What checks may look at.

    Attributes:
        environ: the caller's environment.
        directories: the project's folders.
        loaded: the settings; the defaults where the files cannot be used, which `setting_error` then tells.
        uid: the caller's effective user id.
    """

    environ: Mapping[str, str]
    directories: Directories
    loaded: LoadedSettings
    setting_error: DroiddeckError | None
    uid: int


Check = Callable[[Surroundings], Iterable[Finding]]
