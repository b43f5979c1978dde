# SPDX-License-Identifier: GPL-3.0-or-later
"""The verb `plan` as a user types it, where no guest is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import CommandLine


def test_what_hostprocess_cannot_hold_is_refused_before_anything_is_made(bare_cli: CommandLine) -> None:
    ended = bare_cli("plan", "run", "--backend", "direct", "--hostprocess", "--", "sh", "")
    assert ended.returncode == 2
    assert b"EMPTY_ARGUMENT" in ended.stderr
    assert b"'sh'" in ended.stderr
    assert list(bare_cli.folders["state"].rglob("*")) == []
