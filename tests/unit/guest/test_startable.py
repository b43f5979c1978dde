# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the kernel can start a program of a rootfs: this machine's own programs, and what is made of them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from droiddeck_session.guest.startable import why_not_startable


def rootfs(folder: Path, content: bytes) -> str:
    program = folder / "usr" / "bin" / "env"
    program.parent.mkdir(parents=True)
    program.write_bytes(content)
    program.chmod(0o755)
    return str(folder)


def test_this_machines_own_programs_can_be_started() -> None:
    assert [why_not_startable("/", program) for program in ("/usr/bin/env", "/bin/sh")] == [None, None]


def test_a_dynamic_program_without_its_loader_is_told_by_the_loaders_name(tmp_path: Path) -> None:
    fault = why_not_startable(rootfs(tmp_path, Path("/usr/bin/env").read_bytes()), "/usr/bin/env")
    assert fault is not None
    loader = Path(fault.partition(", which /usr/bin/env needs to run")[0])
    assert loader.name.startswith("ld-")
    (tmp_path / loader.relative_to("/")).parent.mkdir(parents=True)
    shutil.copy(loader, tmp_path / loader.relative_to("/"))
    assert why_not_startable(str(tmp_path), "/usr/bin/env") is None


@pytest.mark.parametrize("content", [b"", b"nothing\n", b"\x7fEL"])
def test_what_is_no_program_is_told(tmp_path: Path, content: bytes) -> None:
    assert (
        why_not_startable(rootfs(tmp_path, content), "/usr/bin/env")
        == f"/usr/bin/env in {str(tmp_path)!r} is no program"
    )


@pytest.mark.parametrize("length", [5, 17, 60, 100, 300])
def test_a_program_that_is_cut_off_is_left_to_the_kernel(tmp_path: Path, length: int) -> None:
    head = Path(sys.executable).read_bytes()[:length]
    assert why_not_startable(rootfs(tmp_path, head), "/usr/bin/env") is None
