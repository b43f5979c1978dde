# SPDX-License-Identifier: GPL-3.0-or-later
"""Removal and real mounts: what is mounted into a guest is neither entered nor emptied."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from guest_trees import fill

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine

pytestmark = pytest.mark.real

PRIVATE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "sh", "-euc"]
# Binds the first path over the second and runs the rest.
MOUNTED = 'mount --bind "$0" "$1"; shift; exec "$@"'
WALK = "import sys; from droiddeck_session.guest import removal; removal._remove(sys.argv[1])"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "precious").touch()
    return folder


def test_a_guest_that_something_is_mounted_in_is_not_removed(
    bare_cli: CommandLine, tmp_path: Path, victim: Path
) -> None:
    fill(tmp_path / "tree")
    assert bare_cli("guest", "import", str(tmp_path / "tree"), "demo").returncode == 0
    guest = bare_cli.folders["data"] / "droiddeck-session" / "guests" / "demo"
    point = guest / "rootfs" / "a mount\npoint"
    point.mkdir()
    done = subprocess.run(
        [*PRIVATE, MOUNTED, victim, point, *bare_cli.argv("guest", "remove", "--yes", "demo")],
        env=bare_cli.environ, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 6
    assert b"[MOUNT_INSIDE]" in done.stderr
    assert b"a mount\\npoint" in done.stderr
    assert (victim / "precious").exists()
    assert (guest / "rootfs" / "usr/bin/env").exists()
    assert bare_cli("guest", "remove", "--yes", "demo").returncode == 0
    assert not guest.exists()


def test_a_mount_that_appears_during_the_removal_is_not_entered(tmp_path: Path, victim: Path) -> None:
    point = tmp_path / "top" / "point"
    point.mkdir(parents=True)
    done = subprocess.run(
        [*PRIVATE, MOUNTED, victim, point, sys.executable, "-c", WALK, tmp_path / "top"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert b"something is mounted at" in done.stderr
    assert (victim / "precious").exists()
