# SPDX-License-Identifier: GPL-3.0-or-later
"""The chroot backend's own promises: no mount comes back, its program is replaced, its failures are 125."""

from __future__ import annotations

import subprocess

import pytest
from backend_stage import ROOTED, Stage, on
from backend_trials import IN_A_MOUNT_NAMESPACE, bind

pytestmark = pytest.mark.real


@on([("chroot", "caller")])
def test_no_mount_comes_back_through_a_shared_one(stage: Stage) -> None:
    shared = stage.folder("shared", "sub/file", "other/file")
    enter = stage.backend.command(
        stage.plan("/bin/sh", "-c", "true", binds=[bind(shared, "/mnt"), bind(shared / "other", "/mnt/sub")]),
        stage.capabilities,
    )
    script = 'mount --bind "$1" "$1" && mount --make-shared "$1" && shift && "$@" && cat /proc/self/mountinfo'
    done = subprocess.run(
        [*IN_A_MOUNT_NAMESPACE, "/bin/sh", "-ec", script, "sh", shared, *enter.argv],
        capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    own = [line for line in done.stdout.splitlines() if str(stage.session) in line]
    assert len(own) == 1, own
    assert "shared:" in own[0]


@on([pair for pair in ROOTED if pair[0] == "chroot"])
def test_the_entering_program_is_replaced_by_the_program(stage: Stage) -> None:
    assert not stage.capabilities.stays_parent
    assert stage.capabilities.forwards_signals


@on([pair for pair in ROOTED if pair[0] == "chroot"])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"binds": [bind("/not/there", "/mnt")]}, b"/not/there"),
        ({"binds": [bind("/usr", "/not/in/the/guest")]}, b"/not/in/the/guest"),
        ({"binds": [bind("/etc/passwd", "/mnt")]}, b"/mnt"),
    ],
)
def test_own_failures_give_125_and_name_the_thing(stage: Stage, change: dict[str, object], told: bytes) -> None:
    done = stage.run("/bin/true", **change)
    assert done.returncode == 125
    assert told in done.stderr
    assert b"Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


@on([pair for pair in ROOTED if pair[0] == "chroot"])
def test_more_binds_than_descriptors_are_allowed_at_first(stage: Stage) -> None:
    folders = stage.folder("many", *(f"{number}/file" for number in range(1200)))
    binds = [bind(stage.folder("below", *(f"{number}/x" for number in range(1200))), "/mnt")]
    binds += [bind(folders / str(number), f"/mnt/{number}") for number in range(1200)]
    assert stage.output("/bin/sh", "-c", "ulimit -n; cat /mnt/1199/file", binds=binds).endswith("\nmany/1199/file")


@on([pair for pair in ROOTED if pair[0] == "chroot"])
def test_a_first_program_that_cannot_be_started_is_our_own_failure(stage: Stage) -> None:
    done = stage.run("/bin/true", binds=[bind("/etc/passwd", "/usr/bin/env")])
    assert done.returncode == 125
    assert b"/usr/bin/env of the guest cannot be started: Permission denied" in done.stderr
