# SPDX-License-Identifier: GPL-3.0-or-later
"""A session's own files: staged exactly, cleared completely; and the mount points that a plan asks for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from droiddeck_session.errors import DroiddeckError
from droiddeck_session.guest import mount_points
from droiddeck_session.guest.staging import PROGRAMS, clear, stage
from droiddeck_session.layers import read_layers
from droiddeck_session.paths import directories
from droiddeck_session.plan.model import FastPath, GuestReference, Identity, MountPoint, Plan, StagedFile
from droiddeck_session.plan.staged import LEAVINGS
from droiddeck_session.plan.tables import parse_tables

PROGRAM = max(path.name for path in PROGRAMS.glob("*.py"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / os.fsdecode(b"session \n:\xff")
    made.mkdir(mode=0o700)
    return made


def plan(folder: Path, *staged: StagedFile, points: tuple[MountPoint, ...] = (), root: str = "/nowhere") -> Plan:
    return Plan(
        kind="run",
        label="test",
        guest=GuestReference(name="demo", root=root),
        backend="bwrap",
        identity=Identity(uid=0, gid=0),
        kernel_release=None,
        nodename=None,
        cwd="/",
        binds=(),
        environment=(),
        argv=("true",),
        staged=staged,
        mount_points=points,
        fast_path=FastPath(enabled=False),
        session=str(folder),
    )


def test_texts_programs_and_folders_are_staged_with_their_modes(folder: Path) -> None:
    content = "nameserver ä\n" + os.fsdecode(b"\xff\xfe")
    stage(
        plan(
            folder,
            StagedFile(path="etc/resolv.conf", content=content),
            StagedFile(path="proc/bus/pci/devices", content="", mode=0o444),
            StagedFile(path="programs/tool", program=PROGRAM, mode=0o755),
            StagedFile(path="tmp", mode=0o1777),
            StagedFile(path="run", mode=0o700),
        )
    )
    assert (folder / "etc/resolv.conf").read_bytes() == os.fsencode(content)
    assert (folder / "proc/bus/pci/devices").read_bytes() == b""
    assert (folder / "programs/tool").read_bytes() == (PROGRAMS / PROGRAM).read_bytes()
    found = {str(path.relative_to(folder)): path.stat().st_mode & 0o7777 for path in folder.rglob("*")}
    assert found["programs/tool"] == 0o755
    assert found["proc/bus/pci/devices"] == 0o444
    assert (found["tmp"], found["run"]) == (0o1777, 0o700)
    assert [name for name in found if Path(name).name.startswith(".")] == []


def test_staging_again_replaces_files_and_leaves_open_ones_whole(folder: Path) -> None:
    stage(plan(folder, StagedFile(path="etc/hosts", content="old")))
    with (folder / "etc/hosts").open() as held:
        stage(plan(folder, StagedFile(path="etc/hosts", content="new")))
        assert held.read() == "old"
    assert (folder / "etc/hosts").read_text() == "new"


def test_a_file_that_cannot_be_staged_is_named(folder: Path) -> None:
    (folder / "etc").write_text("in the way")
    with pytest.raises(DroiddeckError) as refused:
        stage(plan(folder, StagedFile(path="etc/hosts", content="")))
    assert refused.value.code == "NOT_STAGED"
    assert "'etc/hosts'" in refused.value.message


def test_what_the_guest_left_is_cleared_and_the_sessions_record_stays(folder: Path) -> None:
    for name in LEAVINGS:
        (folder / name / "deep" / "er").mkdir(parents=True)
        (folder / name / "deep" / "er").chmod(0)
        (folder / name / "deep").chmod(0)
    (folder / "plan.json").touch()
    (folder / "debug").mkdir()
    (folder / "tmp" / "out").symlink_to(folder / "plan.json")
    assert clear(str(folder)) == ()
    assert {entry.name for entry in folder.iterdir()} == {"plan.json", "debug"}
    assert clear(str(folder)) == ()


def test_what_cannot_be_cleared_is_told_and_does_not_keep_the_rest(folder: Path) -> None:
    (folder / "tmp").symlink_to("/")
    (folder / "tracer").mkdir()
    (complaint,) = clear(str(folder))
    assert "/tmp'" in complaint
    assert not (folder / "tracer").exists()
    assert (folder / "tmp").is_symlink()


def test_a_plans_mount_points_are_made_in_the_rootfs(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "rootfs"
    root.mkdir()
    points = (MountPoint(guest="/a/b", directory=True), MountPoint(guest="/a/file", directory=False))
    for _ in range(2):
        stage(plan(folder, points=points, root=str(root)))
    assert (root / "a/b").is_dir()
    assert (root / "a/file").read_bytes() == b""


def test_fixed_mount_points_are_readable_whatever_the_callers_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        mount_points.make_fixed(
            str(tmp_path),
            (MountPoint(guest="/etc/hosts", directory=False), MountPoint(guest="/opt/droiddeck", directory=True)),
        )
    finally:
        assert os.umask(before) == 0o077
    assert (tmp_path / "opt/droiddeck").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "etc/hosts").stat().st_mode & 0o777 == 0o644


def test_the_fixed_mount_points_are_those_of_the_bind_table(tmp_path: Path) -> None:
    folders = directories({"HOME": str(tmp_path)})
    tables = parse_tables(read_layers("binds.toml", folders), read_layers("environment.toml", folders))
    points = tables.mount_points()
    guests = [point.guest for point in points]
    assert len(guests) == len(set(guests))
    assert {"/etc/ld.so.preload", "/opt/droiddeck", "/run/droiddeck"} <= set(guests)
    mount_points.make_fixed(str(tmp_path), points)
    for point in points:
        assert (tmp_path / point.guest.lstrip("/")).is_dir() is point.directory
