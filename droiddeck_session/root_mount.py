# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether `/` is a mount point: in a plain chroot it is not, and then no mounts can be kept apart from the host's.

The kernel changes the propagation of mount points only, and gives a process in a chroot no user namespace
(mount_namespaces(7), user_namespaces(7)).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

WHY_NOT: Final = "/ is no mount point here, as in a plain chroot, so no mounts can be kept apart from the host's"
FIX: Final = "outside, before this chroot is entered: mount --bind FOLDER FOLDER, then unshare --mount and pivot_root"


def root_is_mounted() -> bool:
    """Whether `/` is a mount point; a machine without /proc is taken for one where it is."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return True
    # proc(5): the fifth field is the mount point.
    return any(line.split(" ", 5)[4] == "/" for line in lines)


def fix(otherwise: str) -> str:
    """Return what makes namespaces work here: the fix for a plain chroot where this is one, else what is passed in."""
    return otherwise if root_is_mounted() else f"{WHY_NOT}; {FIX}"
