# SPDX-License-Identifier: GPL-3.0-or-later
"""The tracer's directory cache: every change on the way is seen at once, and descriptors are bounded."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from resolver_drivers import SANITIZED, Resolver

if TYPE_CHECKING:
    from collections.abc import Iterator


class Guest:
    def __init__(self, top: Path, resolver: Resolver) -> None:
        self.root = top / "root"
        self.resolver = resolver
        (self.root / "a/b/c").mkdir(parents=True)
        (self.root / "other/c").mkdir(parents=True)
        (self.root / "link").symlink_to("a/b")
        for folder in ("a/b/c", "other/c"):
            (self.root / folder / "file").write_text(folder)
        resolver.bind(str(self.root), "")

    def host(self, path: str, mode: str = "follow", base: Path | None = None) -> str:
        found = self.resolver.resolve(path, mode, base=None if base is None else str(base), cached=True)
        return found.error or os.fsdecode(found.host).removeprefix(f"{self.root}/")

    def counts(self) -> tuple[int, int, int]:
        hits, misses, held = (int(word) for word in self.resolver.ask("cache").split())
        return hits, misses, held


@pytest.fixture(params=[(), SANITIZED], ids=["plain", "sanitized"])
def guest(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Guest]:
    with Resolver(*request.param) as resolver:
        yield Guest(tmp_path, resolver)


def test_a_directory_is_looked_up_once(guest: Guest) -> None:
    for name in ("file", "nothing", "file/", "file"):
        guest.host(f"/link/c/{name}")
    assert guest.counts() == (3, 1, 1)


def test_an_answer_from_memory_is_the_whole_answer(guest: Guest) -> None:
    first, second = (guest.resolver.resolve("/link/c/file", cached=True) for _ in range(2))
    assert first == second == guest.resolver.resolve("/link/c/file")


def test_a_relative_path_from_memory_is_left_alone_or_not_as_before(guest: Guest) -> None:
    for path in ("a/b/c/file", "link/c/file", "a/b/c/new"):
        plain = guest.resolver.resolve(path, base=str(guest.root))
        for _ in range(2):
            assert guest.resolver.resolve(path, base=str(guest.root), cached=True) == plain
    assert guest.host("c/file", base=guest.root / "other") == "other/c/file"
    assert guest.host("c/file", base=guest.root / "a/b") == "a/b/c/file"


def test_a_folder_is_not_another_whose_names_run_together_alike(guest: Guest) -> None:
    for folder in ("x/bc", "xb/c"):
        (guest.root / folder).mkdir(parents=True)
    assert guest.host("bc/file", base=guest.root / "x") == "x/bc/file"
    assert guest.host("c/file", base=guest.root / "xb") == "xb/c/file"


@pytest.mark.parametrize(
    ("change", "host"),
    [
        (lambda root: (root / "a").rename(root / "z"), "ENOENT"),
        (lambda root: shutil.rmtree(root / "a/b/c"), "ENOENT"),
        (lambda root: [(root / "a").rename(root / "z"), (root / "a").symlink_to("other")], "ENOENT"),
        (lambda root: [(root / "a/b").rename(root / "z"), (root / "a/b").symlink_to("/other")], "other/c/file"),
        (lambda root: [(root / "link").unlink(), (root / "link").symlink_to("other")], "other/c/file"),
        (lambda root: (root / "link").unlink(), "ENOENT"),
        (lambda root: [(root / "a/b/c").rename(root / "z"), (root / "a/b/c").write_text("")], "ENOTDIR"),
    ],
)  # fmt: skip
def test_every_change_on_the_way_is_seen_at_once(guest: Guest, change: object, host: str) -> None:
    assert guest.host("/link/c/file") == "a/b/c/file"
    assert guest.host("/link/c/file") == "a/b/c/file"
    change(guest.root)  # type: ignore[operator]
    assert guest.host("/link/c/file") == host


def test_a_link_of_the_hosts_put_in_the_way_is_read_in_guest_terms(guest: Guest) -> None:
    (guest.root / "etc").mkdir()
    assert guest.host("/a/b/passwd") == "a/b/passwd"
    (guest.root / "a/b").rename(guest.root / "z")
    (guest.root / "a/b").symlink_to("/etc")
    assert guest.host("/a/b/passwd") == "etc/passwd"


@pytest.mark.parametrize(
    "path",
    ["/a/../a/b", "/link/../b/c", "/a/b/c/..", "/proc/self/cwd/x", "/proc/self/root/a/b", "/" + "./" * 130 + "a/b"],
)
def test_what_a_descriptor_does_not_prove_is_not_remembered(guest: Guest, path: str) -> None:
    guest.resolver.bind("/proc", "/proc")
    guest.resolver.ask("process", os.getpid(), os.getpid())
    (guest.root / "proc").mkdir()
    for _ in range(2):
        assert guest.resolver.resolve(path, cached=True) == guest.resolver.resolve(path)
    assert guest.counts()[0] == guest.counts()[2] == 0


def test_descriptors_are_bounded(guest: Guest) -> None:
    for number in range(2000):
        (guest.root / f"d{number}").mkdir()
        assert guest.host(f"/d{number}/x") == f"d{number}/x"
    held = guest.counts()[2]
    assert 100 < held <= 256
    assert len(list(Path(f"/proc/{guest.resolver.process.pid}/fd").iterdir())) <= held + 8


class Changes(RuleBasedStateMachine):
    """Whatever is made, moved and removed in between: memory never changes an answer."""

    names = st.sampled_from(["a", "b", "l"])
    places = st.lists(names, min_size=1, max_size=3).map("/".join)

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(os.path.realpath(f"/tmp/resolver-cache-{os.getpid()}"))
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()
        self.resolver = Resolver()
        self.resolver.bind(str(self.root), "")

    @rule(place=places)
    def make(self, place: str) -> None:
        if self.free(place):
            (self.root / place).mkdir()

    @rule(place=places, to=places, absolute=st.booleans())
    def link(self, place: str, to: str, *, absolute: bool) -> None:
        if self.free(place):
            (self.root / place).symlink_to(f"/{to}" if absolute else to)

    @rule(place=places, to=places)
    def move(self, place: str, to: str) -> None:
        if self.free(to) and os.path.lexists(self.root / place):
            with contextlib.suppress(OSError):
                (self.root / place).rename(self.root / to)

    @rule(place=places)
    def remove(self, place: str) -> None:
        if (self.root / place).is_symlink():
            (self.root / place).unlink()
        elif (self.root / place).is_dir():
            shutil.rmtree(self.root / place)

    @rule(places=st.lists(places, min_size=1, max_size=4), mode=st.sampled_from(["follow", "nofollow", "parent"]))
    def ask(self, places: list[str], mode: str) -> None:
        for place in places:
            for path, base in ((f"/{place}", None), (place, str(self.root))):
                plain = self.resolver.resolve(path, mode, base=base)
                assert self.resolver.resolve(path, mode, base=base, cached=True) == plain

    def free(self, place: str) -> bool:
        """Nothing is there, its folder is, and no link stands in the way (it would lead this test out of its root)."""
        parent = (self.root / place).parent
        return not os.path.lexists(self.root / place) and parent.is_dir() and parent.resolve() == parent

    def teardown(self) -> None:
        with self.resolver:
            shutil.rmtree(self.root)


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
