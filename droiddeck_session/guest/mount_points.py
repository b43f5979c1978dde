# SPDX-License-Identifier: GPL-3.0-or-later
"""Empty files and folders of the rootfs that a session's binds are laid over.

The fixed ones are made with the guest, so that its sessions need not write to it; the others at a session's start, for
a backend that mounts with the kernel.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from droiddeck_session.errors import FilesError, PlanError
from droiddeck_session.plan.model import MountPoint
from droiddeck_session.rootfs import make_mount_point

if TYPE_CHECKING:
    from collections.abc import Iterable

    from droiddeck_session.plan.model import Plan
    from droiddeck_session.plan.tables import Tables

# What sessions bind beside the rows of binds.toml.
OWN: Final = (
    MountPoint(guest="/etc/ld.so.preload", directory=False),
    MountPoint(guest="/opt/droiddeck", directory=True),
    MountPoint(guest="/run/droiddeck", directory=True),
)


def fixed_mount_points(tables: Tables) -> tuple[MountPoint, ...]:
    """Return the mount points that every guest has: our own and those of the bind table."""
    return tuple({point.guest: point for point in (*OWN, *tables.mount_points())}.values())


def make_fixed(root: str, points: Iterable[MountPoint]) -> None:
    """Make mount points in a rootfs; those that are there already are fine.

    Raises:
        FilesError: MOUNT_POINT; names the path.
    """
    # Who uses the guest need not be who makes it: the caller's umask is not for its files.
    before = os.umask(0o022)
    try:
        for point in points:
            make_mount_point(root, point.guest, directory=point.directory)
    finally:
        os.umask(before)


def make_mount_points(plan: Plan) -> None:
    """Make the mount points that a plan lists for its backend.

    Raises:
        PlanError: READ_ONLY_ROOTFS; names the path that is missing.
        FilesError: MOUNT_POINT; names the path.
    """
    for point in plan.mount_points:
        try:
            make_mount_point(plan.guest.root, point.guest, directory=point.directory)
        except FilesError as error:
            cause = error.__cause__
            if isinstance(cause, OSError) and cause.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
                raise _read_only(plan, point) from error
            raise


def _read_only(plan: Plan, point: MountPoint) -> PlanError:
    kind = "folder" if point.directory else "file"
    return PlanError(
        code="READ_ONLY_ROOTFS",
        message=f"backend {plan.backend} needs an empty {kind} at {point.guest!r} to bind over, and guest"
        f" {plan.guest.name!r} cannot be written",
        hint=f"make {point.guest!r} in the rootfs once, bind somewhere else, or use another backend",
    )
