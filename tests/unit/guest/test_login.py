# SPDX-License-Identifier: GPL-3.0-or-later
"""Which shell `guest shell` starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from droiddeck_session.errors import DroiddeckError
from droiddeck_session.guest.login import login_shell

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for shell in ("bin/sh", "bin/bash", "usr/bin/fish"):
        path = tmp_path / shell
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o755)
    (tmp_path / "etc").mkdir()
    return tmp_path


def passwd(root: Path, *lines: str) -> None:
    (root / "etc/passwd").write_text("".join(f"{line}\n" for line in lines))


def test_the_callers_own_shell_comes_first(root: Path) -> None:
    passwd(root, "root:x:0:0::/root:/bin/sh", f"me:x:{os.geteuid()}:1::/home/me:/usr/bin/fish")
    own = "/bin/sh" if os.geteuid() == 0 else "/usr/bin/fish"  # the first of two lines for one uid counts
    assert login_shell(str(root), as_root=False) == own


def test_roots_shell_stands_for_a_caller_that_the_guest_does_not_know(root: Path) -> None:
    passwd(root, "root:x:0:0::/root:/usr/bin/fish")
    assert login_shell(str(root), as_root=False) == "/usr/bin/fish"
    assert login_shell(str(root), as_root=True) == "/usr/bin/fish"


@pytest.mark.parametrize("line", ["root:x:0:0::/root:/bin/zsh", "root:x:0:0::/root:", "root:x", "", "root:x:0:0::/:sh"])
def test_a_shell_that_is_not_there_gives_way_to_bash_then_sh(root: Path, line: str) -> None:
    passwd(root, line)
    assert login_shell(str(root), as_root=True) == "/bin/bash"
    (root / "bin/bash").unlink()
    assert login_shell(str(root), as_root=True) == "/bin/sh"


def test_a_rootfs_without_any_shell_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DroiddeckError) as refused:
        login_shell(str(tmp_path), as_root=False)
    assert refused.value.code == "NO_SHELL"
    assert str(tmp_path) in refused.value.message
