# SPDX-License-Identifier: GPL-3.0-or-later
"""The guest's working directory: the one that was asked for, if it is there, else the home, else the root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from droiddeck_session.errors import PlanError
from droiddeck_session.plan.guest_paths import below, normalise
from droiddeck_session.plan.model import SESSION
from droiddeck_session.templates import literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from droiddeck_session.facts import Facts
    from droiddeck_session.plan.model import StagedFile
    from droiddeck_session.plan.placing import Placed


def folder_question(asked: str | None) -> frozenset[str]:
    """Return the template of the guest path that must be looked at; none where the home or an error is the answer."""
    try:
        return frozenset() if asked is None else frozenset({literal(normalise(asked))})
    except ValueError:
        return frozenset()


def working_folder(
    asked: str | None,
    home: str,
    facts: Facts,
    placed: Placed,
    offered: Mapping[str, tuple[StagedFile, ...]],
) -> str:
    """Return the guest path of the working directory.

    Args:
        asked: what the user asked for, or None.
        home: of the session's user.
        facts: the machine and the guest.
        placed: the binds.
        offered: what the session can stage.

    Raises:
        PlanError: what was asked for is no folder of the guest.
    """
    if asked is None:
        return _folder(home, facts, placed, offered) or "/"
    try:
        path = normalise(asked)
    except ValueError as error:
        raise _bad(asked, str(error)) from None
    if path == "/":
        return path
    found = _folder(path, facts, placed, offered)
    if found is None:
        raise _bad(asked, "is no folder of the guest that can be entered")
    return found


def _folder(
    path: str, facts: Facts, placed: Placed, offered: Mapping[str, tuple[StagedFile, ...]]
) -> str | None:  # fmt: skip
    """Return a guest path as the guest knows it, if a folder is there: a bind's, or else the rootfs's own."""
    if facts.guest is None:
        there = facts.paths.get(path)
        return path if there is not None and there.kind == "directory" else None
    in_rootfs = facts.guest.paths.get(path)
    for candidate in (path, in_rootfs.resolved if in_rootfs is not None else path):
        cover = placed.cover(candidate)
        if cover is None:
            continue
        rest = below(candidate, cover.bind.guest)
        if not rest:
            return candidate if cover.bind.directory else None
        inside = f"{cover.asked}{rest}"
        if inside.startswith(SESSION):
            path_in_session = inside.removeprefix(f"{SESSION}/")
            files = [file for group in offered.values() for file in group] + placed.staged
            return candidate if any(file.path == path_in_session and file.is_folder for file in files) else None
        there = facts.paths.get(inside)
        return candidate if there is not None and there.kind == "directory" else None
    if in_rootfs is None or in_rootfs.kind != "directory" or not in_rootfs.executable:
        return None
    return in_rootfs.resolved


def _bad(asked: str, why: str) -> PlanError:
    return PlanError(
        code="BAD_CWD",
        message=f"--cwd: {asked!r} {why}",
        hint="give the absolute guest path of a folder that is there, or bind one",
    )
