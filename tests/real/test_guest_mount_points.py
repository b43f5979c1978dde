# SPDX-License-Identifier: GPL-3.0-or-later
"""Mount points on a rootfs that really cannot be written: what is there is used, what is missing is refused by name."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from guest_trees import fill

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.real

PRIVATE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "sh", "-euc"]
READ_ONLY = 'mount --bind "$0" "$0"; mount -o remount,ro,bind "$0"; exec "$@"'
MAKE = """
import sys
from droiddeck_session.errors import DroiddeckError
from droiddeck_session.guest.mount_points import make_mount_points
from droiddeck_session.plan.model import FastPath, GuestReference, Identity, MountPoint, Plan
root, point = sys.argv[1:]
plan = Plan(
    kind="run", label="test", guest=GuestReference(name="demo", root=root), backend="bwrap",
    identity=Identity(uid=0, gid=0), kernel_release=None, nodename=None, cwd="/", binds=(), environment=(),
    argv=("true",), mount_points=(MountPoint(guest=point, directory=True),), fast_path=FastPath(enabled=False),
)
try:
    make_mount_points(plan)
except DroiddeckError as error:
    print(type(error).__name__, error.code, error.message)
"""


@pytest.mark.parametrize(
    ("point", "answer"), [("/usr/bin", b""), ("/mnt/new", b"FilesError MOUNT_POINT")], ids=["there", "missing"]
)
def test_a_read_only_rootfs(tmp_path: Path, point: str, answer: bytes) -> None:
    fill(tmp_path / "root")
    done = subprocess.run(
        [*PRIVATE, READ_ONLY, tmp_path / "root", sys.executable, "-c", MAKE, tmp_path / "root", point],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(answer)
    assert bool(done.stdout) is bool(answer)
    assert (point.encode() in done.stdout) is bool(answer)
