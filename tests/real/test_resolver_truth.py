# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolver against the kernel: random trees, binds and paths, and a mount namespace that has the same binds."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from resolver_drivers import SANITIZED, MountTruth, Resolver, decoded, encoded, error_name

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real, pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")]

NOBODY = 65534
NAMES = [b"a", b"b", b"c", b"d", b"l", b"\xff\x80", b"new\nline", b"...", b" ", b"x" * 255]
LINK_NAMES = [b"a", b"b", b"l", b"m", b"..x"]
ODD = [b".", b"..", b"..", b"", b"missing", b"y" * 256]
COMPONENTS = NAMES + LINK_NAMES + ODD

names = st.sampled_from(NAMES)
components = st.sampled_from(COMPONENTS)
Binds = list[tuple[int, int, bytes | None]]
Asked = list[tuple[int | None, bytes]]

paths = st.builds(
    lambda absolute, middle, slash: (b"/" if absolute else b"") + b"/".join(middle) + slash,
    st.booleans(),
    st.lists(components, min_size=1, max_size=6),
    st.sampled_from([b"", b"", b"", b"/", b"//", b"/.", b"/.."]),
).filter(bool)


@dataclass(frozen=True)
class Entry:
    """Something to make: in which of the folders that there are by then, and what."""

    parent: int
    name: bytes
    kind: str
    target: bytes = b""
    place: int | None = None  # the link leads to a place that there is, and target goes on from it
    relative: bool = False


entries = st.one_of(
    st.builds(Entry, st.integers(0, 30), names, st.just("folder")),
    st.builds(Entry, st.integers(0, 30), names, st.just("file")),
    st.builds(Entry, st.integers(0, 30), st.sampled_from(LINK_NAMES), st.just("link"), paths),
    st.builds(
        Entry,
        st.integers(0, 30),
        st.sampled_from(LINK_NAMES),
        st.just("link"),
        st.sampled_from([b"", b"", b"", b"/", b"/.", b"/..", b"/../a", b"/b"]),
        st.integers(0, 30),
        st.booleans(),
    ),
)
# A path from anywhere, or from the place of that number (links among them) on.
asked_paths = st.tuples(st.none() | st.integers(0, 40), paths)
# Numbers into what there is then: a folder or file of the host, and the guest path of a place or a random one.
binds = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.none() | paths), max_size=6)


@dataclass
class Stage:
    """A host tree: the guest's root, two folders beside it, and an empty one for the truth to stand in."""

    top: Path
    folders: list[bytes] = field(default_factory=list)
    files: list[bytes] = field(default_factory=list)
    links: list[bytes] = field(default_factory=list)

    @property
    def root(self) -> bytes:
        return os.fsencode(self.top / "root")

    @property
    def empty(self) -> str:
        return str(self.top / "empty")

    def make(self, entry: Entry) -> None:
        path = self.folders[entry.parent % len(self.folders)] + b"/" + entry.name
        with contextlib.suppress(FileExistsError):
            if entry.kind == "folder":
                os.mkdir(path)  # noqa: PTH102 - bytes
                self.folders.append(path)
            elif entry.kind == "file":
                os.close(os.open(path, os.O_CREAT | os.O_EXCL))
                self.files.append(path)
            else:
                os.symlink(self.target(entry, path) or b".", path)  # noqa: PTH211 - bytes
                self.links.append(path)

    def target(self, entry: Entry, link: bytes) -> bytes:
        places = self.guest_places(self.folders + self.files + self.links)
        if entry.place is None or not places:
            return entry.target
        place = places[entry.place % len(places)]
        if entry.relative and link.startswith(self.root):
            place = os.path.relpath(place, link[len(self.root) :].rpartition(b"/")[0] or b"/")
        return place + entry.target

    def guest_places(self, paths: list[bytes]) -> list[bytes]:
        return [path[len(self.root) :] for path in paths if path.startswith(self.root + b"/")]

    def asked(self, wanted: Asked) -> list[bytes]:
        places = self.guest_places(self.links + self.folders + self.files) or [b""]

        def path_from(number: int | None, path: bytes) -> bytes:
            if number is None:
                return path
            place = places[number % len(places)]
            return place if path == b"." else place + b"/" + path

        return [path_from(number, path) for number, path in wanted]


@contextlib.contextmanager
def stage(what: list[Entry]) -> Iterator[Stage]:
    top = Path(mkdtemp(prefix="truth-"))
    top.chmod(0o755)
    made = Stage(top)
    try:
        for name in ("root", "beside", "other", "empty"):
            (top / name).mkdir()
        made.folders += [os.fsencode(top / name) for name in ("root", "root", "root", "beside", "other")]
        for entry in what:
            made.make(entry)
        yield made
    finally:
        shutil.rmtree(top)


def bind_all(stage: Stage, resolver: Resolver, truth: MountTruth, wanted: Binds) -> list[tuple[bytes, bytes]]:
    """Binds in both, shallow guest paths first as a session does; what the kernel refuses is no bind in either."""
    resolver.bind(stage.root, b"")
    hosts = stage.folders + stage.files
    places = stage.guest_places(stage.folders + stage.files) or [b"/a"]
    chosen = [
        (hosts[host % len(hosts)], b"/" + path.lstrip(b"/") if path is not None else places[place % len(places)])
        for host, place, path in wanted
    ]
    done: list[tuple[bytes, bytes]] = []
    for host, guest in sorted(chosen, key=lambda bind: bind[1].count(b"/")):
        planned = resolver.resolve(guest)
        if planned.error or planned.guest == b"":
            continue
        # Over a mount that lies deeper: the kernel would hide it, a view cannot. The plan never asks for it.
        if any(other.startswith(planned.guest + b"/") for _, other in done):
            continue
        if truth.ask("mount", encoded(host), encoded(guest)) == "0":
            assert decoded(resolver.ask("mount", encoded(host), encoded(guest))) == planned.guest
            done.append((host, planned.guest))
    return done


def base_of(resolver: Resolver, truth: MountTruth, cwd: bytes) -> bytes | None:
    """Takes the truth to a folder; its host path, or None where it has another name too that may be meant."""
    there = truth.ask("cwd", encoded(cwd))
    place = resolver.resolve(cwd)
    if there.startswith("-"):
        assert place.error or resolver.look(cwd + b"/.") == error_name(there)
        return None
    assert place.error == ""
    assert (place.guest or b"/") == decoded(there)
    return place.name if resolver.guest_name(place.name) == place.guest else None


def compare(resolver: Resolver, truth: MountTruth, path: bytes, base: bytes | None, context: object) -> None:
    if not path.startswith(b"/") and base is None:
        path = b"/" + path
    for mode in ("follow", "nofollow"):
        right = truth.look(path, mode)
        for cached in (False, True, True):
            mine = resolver.look(path, mode, base=base, cached=cached)
            assert mine == right, (mode, cached, path, base, context)
    text = truth.ask("readlink", encoded(path))
    if not text.startswith("-"):
        place = resolver.resolve(path, "nofollow", base=base)
        assert resolver.read_link(place.name) == decoded(text), (path, base, context)


def compare_making(resolver: Resolver, truth: MountTruth, path: bytes, base: bytes | None, context: object) -> None:
    """A new entry is made at the same place, or refused for the same reason."""
    if not path.startswith(b"/") and base is None:
        path = b"/" + path
    mine = resolver.ask("mkdir", encoded(base), encoded(path)).split()
    right = truth.ask("mkdir", encoded(path)).split()
    assert error_name(mine[0]) == error_name(right[0]) if len(mine) == 1 else len(right) == 1, (path, base, context)
    place = resolver.resolve(path, base=base)
    if "missing" in place.flags and not place.host.endswith(b"/"):
        made = truth.ask("create", encoded(path))
        try:
            there = os.lstat(place.host)
            assert made == f"{there.st_dev:x}:{there.st_ino:x}:{there.st_mode:o}", (path, base, context)
        except FileNotFoundError:
            assert made.startswith("-"), (path, base, context)
        else:
            os.unlink(place.host)  # noqa: PTH108 - bytes


def check(
    tree: list[Entry],
    wanted: Binds,
    cwds: list[bytes],
    asked: Asked,
    *flags: str,
) -> None:
    with stage(tree) as made, Resolver(*flags) as resolver, MountTruth(made.root, made.empty) as truth:
        done = bind_all(made, resolver, truth, wanted)
        places = made.guest_places(made.folders)
        links = made.guest_places(made.links)
        for cwd in [b"/", *cwds, *places[-2:], *(guest for _, guest in done[-1:])]:
            base = base_of(resolver, truth, b"/" + cwd.lstrip(b"/"))
            for path in [*made.asked(asked), *places[:3], *links[:4]]:
                compare(resolver, truth, path, base, (tree, done))
                compare_making(resolver, truth, path, base, (tree, done))


trees = st.lists(entries, min_size=6, max_size=30)
some_paths = st.lists(asked_paths, min_size=4, max_size=16)
some_cwds = st.lists(paths, max_size=2)
CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=600, deadline=None, suppress_health_check=CHECKS)
@given(trees, binds, some_cwds, some_paths)
@pytest.mark.timeout(300)
def test_every_path_leads_where_the_kernel_says(
    tree: list[Entry],
    wanted: Binds,
    cwds: list[bytes],
    asked: Asked,
) -> None:
    check(tree, wanted, cwds, asked)


@settings(max_examples=80, deadline=None, suppress_health_check=CHECKS)
@given(trees, binds, some_cwds, some_paths)
@pytest.mark.timeout(300)
def test_every_path_leads_there_with_every_access_checked(
    tree: list[Entry],
    wanted: Binds,
    cwds: list[bytes],
    asked: Asked,
) -> None:
    check(tree, wanted, cwds, asked, *SANITIZED)


@settings(max_examples=4000, deadline=None, suppress_health_check=CHECKS)
@given(trees, binds, some_cwds, some_paths)
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_path_leads_where_the_kernel_says_at_length(
    tree: list[Entry],
    wanted: Binds,
    cwds: list[bytes],
    asked: Asked,
) -> None:
    check(tree, wanted, cwds, asked)


@settings(max_examples=200, deadline=None, suppress_health_check=CHECKS)
@given(trees, binds, some_paths, st.lists(st.sampled_from([0o755, 0o711, 0o644, 0o000]), min_size=8, max_size=8))
@pytest.mark.timeout(300)
def test_folders_that_may_not_be_searched_are_refused_as_the_kernel_refuses(
    tree: list[Entry],
    wanted: Binds,
    asked: Asked,
    modes: list[int],
) -> None:
    with stage(tree) as made, Resolver() as resolver, MountTruth(made.root, made.empty) as truth:
        done = bind_all(made, resolver, truth, wanted)
        for folder, mode in zip(made.folders[5:], modes, strict=False):
            # A mount is reached without its source's folders; a host path is not: they must be open to whoever uses it.
            if any(host.startswith(folder + b"/") for host, _ in done):
                continue
            os.chmod(folder, mode)  # noqa: PTH101 - bytes
        assert resolver.ask("user", NOBODY) == truth.ask("user", NOBODY) == "0"
        for path in [*made.asked(asked), *made.guest_places(made.folders + made.files + made.links)]:
            compare(resolver, truth, path, None, (tree, done, modes))
