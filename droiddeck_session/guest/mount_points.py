# SPDX-License-Identifier: GPL-3.0-or-later
"""Empty files and folders of the rootfs that a session's binds are laid over.

The fixed ones (`Tables.mount_points`) are made with the guest, so that its sessions need not write to it; the others at
a session's start, for a backend that mounts with the kernel.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from droiddeck_session.rootfs import make_mount_point

if TYPE_CHECKING:
    from collections.abc import Iterable

    from droiddeck_session.plan.model import MountPoint, Plan


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
        FilesError: MOUNT_POINT; names the path.
    """
    for point in plan.mount_points:
        make_mount_point(plan.guest.root, point.guest, directory=point.directory)
