# SPDX-License-Identifier: GPL-3.0-or-later
"""What the in-process library relies on: calls from the page pass, and the epoch page counts."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest
from traced import ENVIRON, TIME_LIMIT, SmallGuest, answers, built

KEY = "0123456789abcdef01234567"


def test_calls_from_the_page_pass_and_changed_names_are_counted(guest: SmallGuest) -> None:
    (guest.work / "x").mkdir()
    program = guest.add(built("fast_path"))
    done = guest.traced(program, "/spot/x", str(guest.work / "x"), environ={"PROOT_FASTPATH": KEY})
    assert answers(done) == (
        0,
        [
            "guest path from here: ok", "host path from here: ENOENT",
            "guest path from the page: ENOENT", "host path from the page: ok",
            "openat2 from here: ENOSYS", "openat2 from the page: ok",
            "mkdir: 0, not counted", "rename of a folder: 0, counted", "rename that fails: 2, counted",
            "symlink: 0, counted", "unlink of a link: 0, counted", "rmdir: 0, counted",
            "unlink of a file: 0, not counted", "symlink by a child: 0, counted",
        ],
        "",
    )  # fmt: skip


def test_without_a_key_calls_from_the_page_are_calls_like_any_other(guest: SmallGuest) -> None:
    (guest.work / "x").mkdir()
    program = guest.add(built("fast_path"))
    status, lines, _ = answers(guest.traced(program, "/spot/x", str(guest.work / "x")))
    assert (status, lines[:6]) == (
        0,
        [
            "guest path from here: ok", "host path from here: ENOENT",
            "guest path from the page: ok", "host path from the page: ENOENT",
            "openat2 from here: ENOSYS", "openat2 from the page: ENOSYS",
        ],
    )  # fmt: skip
    assert all(line.endswith("not counted") for line in lines[6:])


@pytest.mark.parametrize("used", ["65536", "1048576"])
def test_no_room_for_the_page_is_told_at_the_start(guest: SmallGuest, used: str) -> None:
    full = guest.top / "full"
    full.mkdir()
    lines = [
        f"mount -t tmpfs -o size=1048576 none {full}",
        f"head -c {used} /dev/zero >{full}/used",
        f"PROOT_TMP_DIR={full} PROOT_FASTPATH={KEY} {shlex.join(guest.command('/bin/mv', '/spot/x', '/spot/y'))}",
    ]
    (guest.work / "x").mkdir()
    namespaces = ["--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--mount"]
    done = subprocess.run(
        ["unshare", *namespaces, "/bin/sh", "-ec", "\n".join(lines)],
        capture_output=True, timeout=TIME_LIMIT, env=ENVIRON, check=False,
    )  # fmt: skip
    status, _, errors = answers(done)
    if used == "65536":
        assert (status, errors) == (0, "")
    else:
        assert status == 125
        assert errors.endswith("No space left on device\n")
