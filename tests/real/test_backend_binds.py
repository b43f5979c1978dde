# SPDX-License-Identifier: GPL-3.0-or-later
"""Binds as each backend really shows them: by inode, nested, written through, read-only, refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from backend_stage import ROOTED, Stage, identity, on, seen
from backend_trials import bind

from droiddeck_session.errors import BackendError

pytestmark = pytest.mark.real


@on(ROOTED)
def test_every_bind_is_seen_by_inode(stage: Stage) -> None:
    folder = stage.folder("a folder\nwith awkward \udcff name", "file", "deep/er/file")
    file = stage.folder("single", "file") / "file"
    binds = [bind(folder, "/mnt"), bind(file, "/etc/hostname"), bind("/proc", "/proc"), bind("/dev", "/dev")]
    places = ["/mnt", "/mnt/file", "/mnt/deep/er/file", "/etc/hostname", "/dev/null"]
    hosts = [folder, folder / "file", folder / "deep/er/file", file, Path("/dev/null")]
    assert seen(stage, binds, *places) == [identity(host) for host in hosts]


@on(ROOTED)
def test_devices_and_proc_work_through_their_binds(stage: Stage) -> None:
    binds = [bind("/proc", "/proc"), bind("/sys", "/sys"), bind("/dev", "/dev")]
    script = "echo gone >/dev/null && head -c 3 /dev/zero | wc -c && readlink /proc/self/cwd && test -d /sys/kernel"
    assert stage.output("/bin/sh", "-c", script, binds=binds) == "3\n/srv\n"


@on(ROOTED)
@pytest.mark.parametrize("outer_first", [True, False])
def test_a_nested_bind_is_seen_in_whichever_order(stage: Stage, *, outer_first: bool) -> None:
    outer = stage.folder("outer", "file", "inner/hidden")
    inner = stage.folder("inner", "file")
    binds = [bind(outer, "/mnt"), bind(inner, "/mnt/inner")]
    places = ["/mnt/file", "/mnt/inner", "/mnt/inner/file"]
    assert seen(stage, binds if outer_first else binds[::-1], *places) == [
        identity(path) for path in (outer / "file", inner, inner / "file")
    ]


@on(ROOTED)
def test_of_two_binds_at_one_place_the_last_is_seen(stage: Stage) -> None:
    first, second = stage.folder("first", "file"), stage.folder("second", "file")
    assert seen(stage, [bind(first, "/mnt"), bind(second, "/mnt")], "/mnt/file") == [identity(second / "file")]
    assert seen(stage, [bind(second, "/mnt"), bind(first, "/mnt")], "/mnt/file") == [identity(first / "file")]


@on(ROOTED)
def test_one_folder_may_be_seen_at_two_places(stage: Stage) -> None:
    folder = stage.folder("both", "file")
    same = identity(folder / "file")
    assert seen(stage, [bind(folder, "/mnt"), bind(folder, "/media")], "/mnt/file", "/media/file") == [same, same]


@on(ROOTED)
def test_a_bind_of_a_part_of_the_rootfs_shows_it_as_it_is(stage: Stage) -> None:
    folder = stage.folder("over", "file")
    # /usr/share is bound over first: what /media shows is the rootfs' own, not what lies over it in the guest.
    binds = [bind(folder, "/usr/share"), bind(stage.root / "usr/share", "/media")]
    assert seen(stage, binds, "/media/zoneinfo") == [identity(stage.root / "usr/share/zoneinfo")]


@on(ROOTED)
def test_what_is_written_through_a_bind_is_written_on_the_host(stage: Stage) -> None:
    folder = stage.folder("shared")
    stage.output("/bin/sh", "-c", "echo from the guest >/mnt/file", binds=[bind(folder, "/mnt")])
    assert (folder / "file").read_text() == "from the guest\n"
    assert (folder / "file").stat().st_uid == stage.person.uid


@on(ROOTED)
def test_a_read_only_bind_refuses_writes_or_is_refused(stage: Stage) -> None:
    folder = stage.folder("kept", "file", "sub/file")
    binds = [bind(folder, "/mnt", read_only=True)]
    if not stage.capabilities.read_only_binds:
        with pytest.raises(BackendError, match="read-only bind") as refusal:
            stage.run("/bin/true", binds=binds)
        assert refusal.value.code == "BACKEND_CANNOT"
        assert stage.backend.name in {"fastpath", "proot"}
        return
    writes = "for f in file new sub/file sub/new; do (echo x >/mnt/$f) 2>/dev/null && echo wrote $f; done; true"
    script = f"cat /mnt/file; {writes}"
    assert stage.output("/bin/sh", "-c", script, binds=binds) == "kept/file"
    assert (folder / "file").read_text() == "kept/file"


@on(ROOTED)
def test_a_colon_in_a_bind_works_or_is_refused_by_name(stage: Stage) -> None:
    folder = stage.folder("co:lon", "file")
    binds = [bind(folder, "/mnt")]
    if stage.capabilities.colon_in_binds:
        assert seen(stage, binds, "/mnt/file") == [identity(folder / "file")]
    else:
        with pytest.raises(BackendError, match="co:lon"):
            stage.run("/bin/true", binds=binds)
