# SPDX-License-Identifier: GPL-3.0-or-later
"""In a plain chroot, where `/` is no mount point: what needs mounts of its own says so and names the fix."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine

pytestmark = pytest.mark.real

# All folders of this machine, below a folder that is itself no mount point.
ENTER = """\
mkdir "$1/root"
for entry in /*; do
    if [ -L "$entry" ]; then cp -P "$entry" "$1/root$entry"
    elif [ -d "$entry" ]; then mkdir "$1/root$entry"; mount --rbind "$entry" "$1/root$entry"; fi
done
base=$1; shift
exec chroot "$base/root" "$@"
"""


def in_a_plain_chroot(cli: CommandLine, folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    (folder / "base").mkdir()
    as_root = ["--map-root-user"] if os.geteuid() != 0 else []
    argv = ["unshare", *as_root, "--mount", "sh", "-euc", ENTER, "sh", str(folder / "base"), *cli.argv(*arguments)]
    return subprocess.run(argv, env=cli.environ, capture_output=True, timeout=50, check=False)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["guest", "create", "other"], 7),
        (["run", "--backend", "bwrap", "true"], 125),
        (["run", "--backend", "chroot", "true"], 125),
    ],
)
def test_what_needs_mounts_of_its_own_names_the_fix(
    cli: CommandLine, tmp_path: Path, arguments: list[str], status: int
) -> None:
    if arguments[0] == "run":  # what was found outside is not taken for what holds inside
        assert cli(*arguments).returncode == 0
    done = in_a_plain_chroot(cli, tmp_path, *arguments)
    assert done.returncode == status, done.stderr.decode()
    assert b"/ is no mount point here" in done.stderr
    assert b"mount --bind FOLDER FOLDER" in done.stderr
