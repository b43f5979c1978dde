# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolver's rules one by one: where a guest path leads, and with which errno it is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from resolver_drivers import SANITIZED, Resolver

if TYPE_CHECKING:
    from collections.abc import Iterator


class Guest:
    """A root with a few files, and the resolver that sees it with two binds."""

    def __init__(self, top: Path, resolver: Resolver) -> None:
        self.top = top
        self.resolver = resolver
        self.root = top / "root"
        self.beside = top / "beside"
        for folder in ("root/a/b", "root/mnt/deep", "root/etc", "beside/sub/x"):
            (top / folder).mkdir(parents=True)
        (self.root / "a/file").write_text("x")
        (self.root / "etc/name").write_text("x")
        (top / "text").write_text("x")
        for link, target in {
            "abs": "/a", "rel": "a/b", "out": "../../../etc", "self": "self", "ping": "pong", "pong": "ping",
            "dangling": "a/new", "dangling-deep": "nowhere/new", "slash": "a/file/", "into": "/mnt/sub",
            "a/up": "..", "to-file": "a/file", "dir-slash": "a/", "to-root": "/",
        }.items():  # fmt: skip
            (self.root / link).symlink_to(target)
        resolver.bind(str(self.root), "")
        resolver.bind(str(self.beside), "/mnt")
        resolver.bind(str(top / "text"), "/etc/name")

    def host(self, path: str | bytes, mode: str = "follow", base: Path | str | None = None) -> str:
        """The host path relative to the folder of the test, or an errno's name."""
        found = self.resolver.resolve(path, mode, base=None if base is None else str(base))
        return found.error or os.fsdecode(found.host).removeprefix(f"{self.top}/")

    def flags(self, path: str, mode: str = "follow", base: Path | None = None) -> frozenset[str]:
        found = self.resolver.resolve(path, mode, base=None if base is None else str(base))
        assert found.error == ""
        return found.flags


@pytest.fixture(params=[(), SANITIZED], ids=["plain", "sanitized"])
def guest(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Guest]:
    with Resolver(*request.param) as resolver:
        yield Guest(tmp_path, resolver)


@pytest.mark.parametrize(
    ("path", "mode", "host"),
    [
        ("/", "follow", "root"),
        ("///", "follow", "root"),
        ("/a/file", "follow", "root/a/file"),
        ("//a///file", "follow", "root/a/file"),
        ("/./a/./file", "follow", "root/a/file"),
        ("/abs/file", "follow", "root/a/file"),
        ("/abs", "nofollow", "root/abs"),
        ("/abs", "follow", "root/a"),
        ("/abs/", "nofollow", "root/a/"),
        ("/rel/..", "follow", "root/a/"),
        ("/a/up/etc", "follow", "root/etc"),
        ("/a/up/..", "follow", "root/"),
        ("/../../..", "follow", "root/"),
        ("/out", "follow", "root/etc"),
        ("/out/name", "follow", "text"),
        ("/to-root", "follow", "root"),
        ("/to-root/a", "follow", "root/a"),
        # What the last component is stays with the kernel.
        ("/a/.", "follow", "root/a/."),
        ("/a/file/", "follow", "root/a/file/"),
        ("/a/file/.", "follow", "root/a/file/."),
        ("/slash", "follow", "root/a/file/"),
        ("/dir-slash", "follow", "root/a/"),
        ("/a/new/", "parent", "root/a/new/"),
        ("/abs/", "parent", "root/abs/"),
        ("/a/.", "parent", "root/a/."),
        ("/a/..", "parent", "root/a/.."),
        ("/abs/..", "parent", "root/a/.."),
        ("/", "parent", "root/."),
        ("/self", "parent", "root/self"),
        ("/self", "nofollow", "root/self"),
        ("/a/file/x", "parent", "root/a/file/x"),
        # Missing: in a directory that there is.
        ("/a/new", "follow", "root/a/new"),
        ("/dangling", "follow", "root/a/new"),
        ("/dangling/", "follow", "root/a/new/"),
        # Binds.
        ("/mnt", "follow", "beside"),
        ("/mnt/sub/x", "follow", "beside/sub/x"),
        ("/mnt/deep", "follow", "beside/deep"),
        ("/mnt/sub/../..", "follow", "root/"),
        ("/mnt/../a", "follow", "root/a"),
        ("/into/..", "follow", "beside/"),
        ("/into/../..", "follow", "root/"),
        ("/etc/name", "nofollow", "text"),
        ("/etc/name/", "follow", "text/"),
    ],
)  # fmt: skip
def test_a_path_leads_where_the_binds_say(guest: Guest, path: str, mode: str, host: str) -> None:
    assert guest.host(path, mode) == host


@pytest.mark.parametrize(
    ("path", "mode", "error"),
    [
        ("", "follow", "ENOENT"),
        ("/nowhere/x", "follow", "ENOENT"),
        ("/nowhere/x", "parent", "ENOENT"),
        ("/nowhere", "parent", ""),
        ("/nowhere/x/y", "parent", "ENOENT"),
        ("/nowhere/..", "follow", "ENOENT"),
        ("/nowhere/.", "follow", "ENOENT"),
        ("/dangling/x", "follow", "ENOENT"),
        ("/dangling-deep", "follow", "ENOENT"),
        ("/a/file/..", "follow", "ENOTDIR"),
        ("/a/file/../x", "nofollow", "ENOTDIR"),
        ("/a/file/x", "follow", "ENOTDIR"),
        ("/a/file/x/y", "parent", "ENOTDIR"),
        ("/etc/name/..", "follow", "ENOTDIR"),
        ("/etc/name/x", "follow", "ENOTDIR"),
        ("/slash/..", "follow", "ENOTDIR"),
        ("/self", "follow", "ELOOP"),
        ("/self/x", "parent", "ELOOP"),
        ("/ping", "follow", "ELOOP"),
        ("/" + "n" * 256, "follow", "ENAMETOOLONG"),
        ("/" + "n" * 256 + "/..", "follow", "ENAMETOOLONG"),
        ("/" + "n" * 255, "follow", ""),
        ("/" * 4095, "follow", ""),
        ("/" * 4096, "follow", "ENAMETOOLONG"),
        ("/./" * 1365, "follow", ""),
        ("/nowhere" + "/" * 4096, "follow", "ENAMETOOLONG"),
    ],
)
def test_a_path_is_refused_as_the_kernel_refuses_it(guest: Guest, path: str, mode: str, error: str) -> None:
    assert guest.resolver.resolve(path, mode).error == error


@pytest.mark.parametrize(("count", "error"), [(40, ""), (41, "ELOOP")])
def test_forty_links_are_followed_and_no_more(guest: Guest, count: int, error: str) -> None:
    (guest.root / "chain0").mkdir()
    for number in range(count):
        (guest.root / f"chain{number + 1}").symlink_to(f"chain{number}")
    found = guest.resolver.resolve(f"/chain{count}")
    assert found.error == error
    assert guest.resolver.resolve(f"/chain{count}", "nofollow").error == ""
    assert guest.resolver.resolve(f"/chain{count}/x", "parent").error == error
    if not error:
        assert found.links == count


def test_a_link_through_itself_loops_however_long_its_text(guest: Guest) -> None:
    (guest.root / "long").symlink_to("long/" + "/".join(["y" * 255] * 15))
    assert guest.host("/long") == "ELOOP"


def test_texts_of_nested_links_may_be_longer_than_a_path(guest: Guest) -> None:
    filler = "/." * 2000
    (guest.root / "one").symlink_to("two" + filler)
    (guest.root / "two").symlink_to("a" + filler)
    assert guest.host("/one" + filler) == "root/a/."
    # So long that there is no room for the far end: refused, and never taken for the path without that end.
    (guest.root / "three").symlink_to("one" + filler)
    (guest.root / "four").symlink_to("three" + filler)
    assert guest.host("/four" + filler + "/file") == "ENAMETOOLONG"


@pytest.mark.parametrize(
    ("path", "mode", "shown"),
    [
        ("/mnt", "follow", True),
        ("/mnt", "parent", True),
        ("/mnt/", "parent", True),
        ("/mnt/sub/..", "follow", True),
        ("/mnt/sub", "parent", False),
        ("/etc/name", "nofollow", True),
        ("/", "parent", True),
        ("/into", "follow", False),
        ("/into", "parent", False),
        ("/a", "parent", False),
        ("/mnt/..", "parent", False),
    ],
)
def test_mount_points_are_told(guest: Guest, path: str, mode: str, *, shown: bool) -> None:
    assert ("mount_point" in guest.flags(path, mode)) is shown


def test_the_mount_of_a_name_is_that_of_its_directory_and_of_a_file_its_own(guest: Guest) -> None:
    def mount(path: str, mode: str) -> int:
        return guest.resolver.resolve(path, mode).mount

    root = mount("/", "follow")
    inside = mount("/mnt/sub", "follow")
    assert root != inside
    assert mount("/mnt", "parent") == root
    assert mount("/mnt/new", "parent") == inside
    assert mount("/etc/name", "parent") == root
    assert mount("/etc/name", "nofollow") not in {root, inside}
    assert mount("/mnt/..", "follow") == root


@pytest.mark.parametrize(
    ("path", "mode", "changed"),
    [
        ("file", "follow", False),
        ("b/../file", "follow", True),
        ("b/new", "follow", False),
        ("./b/.", "follow", False),
        ("b/", "follow", False),
        ("up", "nofollow", False),
        ("up", "follow", True),
        ("up/a", "nofollow", True),
        ("new", "parent", False),
        ("..", "parent", True),
    ],
)
def test_a_relative_name_is_left_alone_unless_something_stands_in_the_way(
    guest: Guest, path: str, mode: str, *, changed: bool
) -> None:
    assert ("changed" in guest.flags(path, mode, guest.root / "a")) is changed


def test_a_relative_name_that_meets_a_bind_is_changed(guest: Guest) -> None:
    assert "changed" in guest.flags("mnt/x", base=guest.root)
    assert guest.host("name", base=guest.root / "etc") == "text"
    assert guest.host("../..", base=guest.beside / "sub") == "root/"


def test_an_absolute_path_that_is_the_hosts_own_is_left_alone(tmp_path: Path) -> None:
    with Resolver() as resolver:
        resolver.bind("/", "")
        assert "changed" not in resolver.resolve(str(tmp_path)).flags
        assert resolver.resolve("/").host == b"/"
        assert resolver.resolve("/..").host == b"/"
        assert "changed" in resolver.resolve(f"{tmp_path}/../{tmp_path.name}").flags


def test_without_a_root_no_absolute_path_is_found(guest: Guest) -> None:
    with Resolver() as resolver:
        resolver.bind(str(guest.beside), "/mnt")
        assert resolver.resolve("/mnt/sub").error == "ENOENT"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives up root's rights")
def test_a_folder_that_may_not_be_searched_hides_what_is_below_it(guest: Guest) -> None:
    folder = guest.top
    while folder != Path("/"):
        if folder.stat().st_uid == 0 and folder.stat().st_mode & 0o001 == 0:
            folder.chmod(0o711)
        folder = folder.parent
    (guest.root / "closed/in").mkdir(parents=True)
    (guest.root / "closed").chmod(0o644)
    guest.resolver.bind(str(guest.beside), "/closed/bound")
    assert guest.resolver.ask("user", 65534) == "0"
    for path in ("/closed/in", "/closed/..", "/closed/bound", "/closed/bound/sub"):
        assert guest.host(path) == "EACCES", path
    assert guest.resolver.look("/closed/.") == "EACCES"
    assert guest.resolver.look("/closed/").endswith(":40644")
    assert guest.resolver.look("/closed").endswith(":40644")
    assert guest.resolver.resolve("/closed/new", "parent").error == ""


def test_a_removed_directory_has_no_names_but_its_own_and_its_parents(guest: Guest) -> None:
    gone = f"{guest.root}/a/gone (deleted)"
    assert guest.host("x", base=gone) == "root/a/gone (deleted)/x"
    assert {"missing"} == guest.flags("x", base=Path(gone))
    assert guest.host("x/y", base=gone) == "ENOENT"
    assert "changed" not in guest.flags(".", base=Path(gone))
    assert guest.host("..", base=gone) == "root/a/"
    assert guest.host("/etc", base=gone) == "root/etc"


def test_a_directory_that_no_bind_shows_is_walked_as_it_is(guest: Guest) -> None:
    other = guest.top / "other"
    (other / "deep").mkdir(parents=True)
    (other / "deep/link").symlink_to("/a/file")
    (other / "link").symlink_to("deep")
    assert "changed" not in guest.flags("deep", base=other)
    assert guest.host("link/link", base=other) == "root/a/file"
    assert guest.host("link/.", base=other) == "other/deep/."
    assert guest.host("deep/..", base=other) == "other/deep/../"
    found = guest.resolver.resolve("link", base=str(other))
    assert "outside" in found.flags
    assert (found.mount, found.guest) == (-1, b"")


def test_without_a_base_a_relative_path_is_not_found(guest: Guest) -> None:
    assert guest.host("a") == "ENOENT"


def test_every_byte_of_a_name_counts(guest: Guest) -> None:
    for name in (b"\xff\x80", b"new\nline", b"sp ace", b"...", b"..x", b".x", b"x" * 255):
        path = os.fsencode(guest.root) + b"/" + name
        os.mkdir(path)  # noqa: PTH102 - bytes
        found = guest.resolver.resolve(b"/" + name + b"/.")
        assert found.name == path
        assert found.guest == b"/" + name


def test_host_paths_beyond_path_max_are_told_and_walked(guest: Guest) -> None:
    name = "d" * 250
    descriptor = os.open(guest.root, os.O_PATH)
    for _ in range(16):
        os.mkdir(name, dir_fd=descriptor)
        descriptor, former = os.open(name, os.O_PATH, dir_fd=descriptor), descriptor
        os.close(former)
    os.symlink("/a/file", "link", dir_fd=descriptor)
    end = "l" * 70
    os.mkdir(end, dir_fd=descriptor)
    last = os.stat(end, dir_fd=descriptor)
    os.close(descriptor)
    deep = f"/{name}" * 16
    found = guest.resolver.resolve(f"{deep}/{end}")
    assert len(f"{deep}/{end}") < 4096 < len(found.host)
    for mode in ("follow", "nofollow"):
        for cached in (False, True, True):
            mine = guest.resolver.look(f"{deep}/{end}", mode, cached=cached)
            assert mine == f"{last.st_dev:x}:{last.st_ino:x}:{last.st_mode:o}"
    assert guest.host(f"{deep}/link") == "root/a/file"
    assert guest.host(f"{deep}/link/x") == "ENOTDIR"
    assert guest.host(f"{deep}/nowhere/x") == "ENOENT"
