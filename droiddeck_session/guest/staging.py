# SPDX-License-Identifier: GPL-3.0-or-later
"""A session's own files: made in its folder before the start, and the guest's leavings in it removed at the end.

The rootfs is not written to, but for mount points that a kernel backend needs; what belongs to a session is bound over.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from droiddeck_session.errors import DroiddeckError, FilesError
from droiddeck_session.guest.mount_points import make_mount_points
from droiddeck_session.guest.removal import remove_tree
from droiddeck_session.plan.staged import LEAVINGS

if TYPE_CHECKING:
    from droiddeck_session.plan.model import Plan, StagedFile

PROGRAMS: Final = Path(__file__).parent / "programs"


def stage(plan: Plan) -> None:
    """Make the files of a concrete plan in its session folder, then its mount points in the rootfs.

    Args:
        plan: bound to a folder that is the caller's own (0700), so no other account can put a link into it.

    Raises:
        FilesError: NOT_STAGED, MOUNT_POINT; names the file or path that cannot be made.
    """
    folder = Path(plan.session)
    for entry in plan.staged:
        target = folder / entry.path
        try:
            _make(target, entry)
        except OSError as error:
            raise FilesError(
                code="NOT_STAGED",
                message=f"cannot make the session's {entry.path!r}: {error.strerror} ({os.fspath(target)!r})",
                hint="make room, or set XDG_STATE_HOME to a folder that can be written",
            ) from error
    make_mount_points(plan)


def clear(folder: str) -> tuple[str, ...]:
    """Remove what the guest and the tracer left in a session folder.

    It never fails: a session's status matters more. What could not be removed is returned, one line each.
    """
    complaints = []
    for name in LEAVINGS:
        try:
            remove_tree(f"{folder}/{name}")
        except DroiddeckError as error:
            complaints.append(error.message)
    return tuple(complaints)


def _make(target: Path, entry: StagedFile) -> None:
    if entry.content is None and entry.program is None:
        target.mkdir(parents=True, exist_ok=True)
        target.chmod(entry.mode)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    # Not synced: after a crash of the machine no session is left to read it.
    arriving = target.with_name(f".{target.name}.{os.getpid()}")
    if entry.program is not None:
        shutil.copyfile(PROGRAMS / entry.program, arriving)
    else:
        arriving.write_bytes(os.fsencode(entry.content or ""))
    arriving.chmod(entry.mode)
    arriving.replace(target)
