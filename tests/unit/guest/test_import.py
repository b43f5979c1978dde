# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking in archives and folders, with the system's tar and cp: whole ones as they are, hostile ones not at all."""

from __future__ import annotations

import io
import os
import shutil
import stat
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from guest_trees import fill

from droiddeck_session.errors import DroiddeckError
from droiddeck_session.guest.import_tree import default_name, import_tree
from droiddeck_session.plan.model import MountPoint

if TYPE_CHECKING:
    from guest_trees import Workshop

ODD = os.fsdecode(b"space, new\nline, colon: and \xff")
POINTS = (MountPoint(guest="/etc/ld.so.preload", directory=False), MountPoint(guest="/run/droiddeck", directory=True))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A rootfs with what copies get wrong: odd names, links of both kinds, holes, rights, a set-group-id bit."""
    root = tmp_path / "tree"
    fill(root)
    (root / ODD).mkdir()
    (root / ODD / ODD).write_text("odd")
    (root / "absolute").symlink_to("/etc/passwd")
    (root / "up").symlink_to("../../../../etc/passwd")
    (root / "hard").hardlink_to(root / "usr/bin/env")
    os.mkfifo(root / "fifo")
    (root / "closed").mkdir()
    (root / "closed" / "file").touch()
    # Only root can copy what nobody may read.
    (root / "closed" / "file").chmod(0 if os.geteuid() == 0 else 0o400)
    (root / "closed").chmod(0o500)
    (root / "shared").mkdir()
    (root / "shared").chmod(0o2775)
    return root


def check_tree(root: Path) -> None:
    assert (root / ODD / ODD).read_text() == "odd"
    assert (root / "absolute").readlink() == Path("/etc/passwd")
    assert (root / "up").readlink() == Path("../../../../etc/passwd")
    assert (root / "hard").samefile(root / "usr/bin/env")
    assert stat.S_ISFIFO((root / "fifo").lstat().st_mode)
    assert stat.S_IMODE((root / "closed").stat().st_mode) == 0o500
    assert stat.S_IMODE((root / "closed" / "file").lstat().st_mode) == 0
    assert stat.S_IMODE((root / "shared").stat().st_mode) == 0o2775
    assert (root / "etc/ld.so.preload").read_bytes() == b""
    assert (root / "run/droiddeck").is_dir()


def refuse(workshop: Workshop, source: Path | str, code: str) -> DroiddeckError:
    """Import what must be refused; nothing of it may be left."""
    with pytest.raises(DroiddeckError) as refused:
        import_tree(workshop.store, str(source), "demo", points=POINTS)
    assert refused.value.code == code
    assert refused.value.hint
    assert not workshop.guests.exists() or workshop.entries() == []
    return refused.value


def member(name: str, kind: bytes = tarfile.REGTYPE, *, target: str = "", mode: int = 0o755) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = kind, target, mode
    return entry


def archive(path: Path, *members: tarfile.TarInfo) -> Path:
    """Write an archive of these members, after what makes it a rootfs; each regular file says `hostile`."""
    with tarfile.open(path, "w") as tar:
        for entry in (
            member("usr", tarfile.DIRTYPE),
            member("usr/bin", tarfile.DIRTYPE),
            member("usr/bin/env"),
            *members,
        ):
            entry.size = 7 if entry.isreg() else 0
            tar.addfile(entry, io.BytesIO(b"hostile"))
    return path


@pytest.mark.parametrize("compression", ["", "--gzip", "--xz", "--zstd"])
def test_an_archive_is_taken_in_as_it_is(workshop: Workshop, tree: Path, tmp_path: Path, compression: str) -> None:
    path = tmp_path / f"{ODD}.tar"
    subprocess.run(
        ["tar", "--create", "--force-local", f"--file={path}", *filter(None, [compression]), "-C", tree, "."],
        check=True,
    )
    made, left_out = import_tree(workshop.store, str(path), "demo", points=POINTS)
    check_tree(Path(made.root))
    assert left_out == 0
    assert made.record is not None
    assert made.record.source == str(path)
    assert workshop.store.find("demo") == made


def test_a_folder_is_copied_as_it_is_and_left_as_it_was(workshop: Workshop, tree: Path) -> None:
    made, _ = import_tree(workshop.store, str(tree), "demo", points=POINTS)
    check_tree(Path(made.root))
    assert not (tree / "etc").exists()


def test_a_folder_that_is_named_by_a_link_or_from_here_is_copied_too(
    workshop: Workshop, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(tree)
    monkeypatch.chdir(tmp_path)
    check_tree(Path(import_tree(workshop.store, "link", "one", points=POINTS)[0].root))
    monkeypatch.chdir(tree)
    check_tree(Path(import_tree(workshop.store, ".", "two", points=POINTS)[0].root))


def test_a_folder_that_holds_the_store_is_refused(workshop: Workshop, tmp_path: Path) -> None:
    refuse(workshop, tmp_path, "NO_SOURCE")


@pytest.mark.parametrize(
    "name", ["../escaped", "a/../../escaped", "../../../../../../../../tmp/escaped", "/../escaped"]
)
def test_an_archive_that_climbs_is_refused(workshop: Workshop, tmp_path: Path, name: str) -> None:
    refusal = refuse(workshop, archive(tmp_path / "x.tar", member(name)), "HOSTILE_ARCHIVE")
    assert ".." in refusal.message
    assert list(tmp_path.rglob("escaped")) == []


def test_an_archive_whose_hard_link_climbs_is_refused(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("victim")
    path = archive(tmp_path / "x.tar", member("got", tarfile.LNKTYPE, target="../../../../../../victim"))
    with pytest.raises(DroiddeckError):
        import_tree(workshop.store, str(path), "demo", points=POINTS)
    assert workshop.entries() == []


def test_absolute_names_land_inside(workshop: Workshop, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    path = archive(tmp_path / "x.tar", member(str(outside)))
    made, _ = import_tree(workshop.store, str(path), "demo", points=POINTS)
    assert Path(made.root + str(outside)).read_text() == "hostile"
    assert not outside.exists()


@pytest.mark.parametrize("way", ["link then file", "link then folder then file", "link to link", "hard link to link"])
def test_nothing_is_written_through_a_link_that_leads_out(workshop: Workshop, tmp_path: Path, way: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("victim")
    out = member("out", tarfile.SYMTYPE, target=str(victim))
    file = member("out/file")
    members = {
        "link then file": (out, file),
        "link then folder then file": (out, member("out", tarfile.DIRTYPE), file),
        "link to link": (out, member("more", tarfile.SYMTYPE, target="out"), member("more/file")),
        "hard link to link": (
            member("out", tarfile.SYMTYPE, target=str(victim / "file")),
            member("hard", tarfile.LNKTYPE, target="out"),
            member("hard"),
        ),
    }[way]
    path = archive(tmp_path / "x.tar", *members)
    try:
        import_tree(workshop.store, str(path), "demo", points=POINTS)
    except DroiddeckError as error:
        assert error.code == "BAD_ARCHIVE"  # noqa: PT017 - either is right: refused, or kept inside
        assert workshop.entries() == []
    assert [(entry.name, entry.read_text()) for entry in victim.iterdir()] == [("file", "victim")]


def test_mount_points_are_not_made_through_a_link_that_leads_out(workshop: Workshop, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    path = archive(tmp_path / "x.tar", member("run", tarfile.SYMTYPE, target=str(victim)))
    made, _ = import_tree(workshop.store, str(path), "demo", points=POINTS)
    assert list(victim.iterdir()) == []
    assert Path(f"{made.root}{victim}/droiddeck").is_dir()


def test_a_rootfs_with_a_file_in_the_place_of_a_mount_point_is_refused(workshop: Workshop, tmp_path: Path) -> None:
    refusal = refuse(workshop, archive(tmp_path / "x.tar", member("run/droiddeck")), "MOUNT_POINT")
    assert "/run/droiddeck" in refusal.message


def test_what_holds_no_env_is_refused_by_name(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "/usr/bin/env" in refuse(workshop, tmp_path / "empty", "NOT_A_ROOTFS").message


def test_env_must_be_inside(workshop: Workshop, tmp_path: Path) -> None:
    path = archive(tmp_path / "x.tar", member("usr/bin/env", tarfile.SYMTYPE, target="/usr/bin/python3"))
    refuse(workshop, path, "NOT_A_ROOTFS")


def test_a_rootfs_one_folder_down_is_pointed_out(workshop: Workshop, tmp_path: Path) -> None:
    fill(tmp_path / "outer" / "debian")
    assert "its folder 'debian'" in refuse(workshop, tmp_path / "outer", "NOT_A_ROOTFS").hint


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b no gzip", b"\x28\xb5\x2f\xfd no zstd"])
def test_what_is_no_archive_is_refused(workshop: Workshop, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(content)
    refuse(workshop, path, "BAD_ARCHIVE")


def test_an_archive_that_was_cut_off_is_refused(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(tmp_path / "x.tar", *(member(f"file{number}") for number in range(50)))
    path.write_bytes(path.read_bytes()[:20_000])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary files"))
    (tmp_path / "temporary files").mkdir()
    hint = refuse(workshop, path, "BAD_ARCHIVE").hint
    # The stage is gone, but the line can be pasted.
    pasted = subprocess.run(["sh", "-c", hint.removeprefix("to see it again: ")], capture_output=True, check=False)
    assert b"Unexpected EOF" in pasted.stderr


@pytest.mark.parametrize("kind", ["missing", "fifo", "dangling"])
def test_a_source_that_cannot_be_read_is_refused(workshop: Workshop, tmp_path: Path, kind: str) -> None:
    source = tmp_path / "source"
    if kind == "fifo":
        os.mkfifo(source)
    elif kind == "dangling":
        source.symlink_to("nowhere")
    refuse(workshop, source, "NO_SOURCE")


def test_what_unpacks_an_archive_is_named_where_it_is_missing(
    workshop: Workshop, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.tar.xz"
    subprocess.run(["tar", "--create", "--xz", f"--file={path}", "-C", tree, "usr"], check=True)
    (tmp_path / "bin").mkdir()
    for name in ("tar", "setpriv"):
        (tmp_path / "bin" / name).symlink_to(Path(shutil.which(name) or ""))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    error = refuse(workshop, path, "MISSING_TOOL")
    assert (error.hint, "needs xz" in error.message) == ("apt-get install xz-utils", True)


def test_a_source_without_a_name_is_refused(workshop: Workshop) -> None:
    refuse(workshop, "", "NO_SOURCE")


def test_the_callers_tar_options_change_nothing(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAR_OPTIONS", "--exclude=usr")
    made, _ = import_tree(workshop.store, str(archive(tmp_path / "x.tar")), "demo", points=POINTS)
    assert Path(made.root, "usr/bin/env").exists()


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("/a/Debian 13.tar.xz", "debian-13"),
        ("root.tgz", "root"),
        ("x/.hidden.tar", "hidden"),
        ("bookworm/", "bookworm"),
        ("debian_12.5-slim.tar.zst", "debian_12.5-slim"),
        ("a" * 100, "a" * 64),
    ],
)
def test_a_source_suggests_a_name(source: str, name: str) -> None:
    assert default_name(source) == name


@pytest.mark.parametrize("source", ["/", "..tar", "\udcff", "___"])
def test_a_source_that_suggests_no_name_asks_for_one(source: str) -> None:
    with pytest.raises(DroiddeckError) as refused:
        default_name(source)
    assert refused.value.code == "BAD_GUEST_NAME"
