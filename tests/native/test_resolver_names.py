# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolver's view and the way back: which binds there may be, and what a host path is called in the guest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resolver_drivers import SANITIZED, Resolver, decoded, encoded, error_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=[(), SANITIZED], ids=["plain", "sanitized"])
def resolver(request: pytest.FixtureRequest) -> Iterator[Resolver]:
    with Resolver(*request.param) as started:
        yield started


@pytest.mark.parametrize(
    ("host", "guest", "answer"),
    [
        ("/", "", "0"),
        ("/", "/", "0"),
        ("/tmp/", "/x//", "0"),
        ("/tmp", "x", "EINVAL"),
        ("tmp", "/x", "EINVAL"),
        ("/tmp", "/x/../y", "EINVAL"),
        ("/tmp", "/./y", "EINVAL"),
        ("/tmp//x", "/y", "EINVAL"),
        ("/tmp", "/..x/.y/...", "0"),
        ("/" + "x" * 4094, "/y", "0"),
        ("/" + "x" * 4095, "/y", "ENAMETOOLONG"),
    ],
)
def test_a_bind_has_two_canonical_absolute_paths(resolver: Resolver, host: str, guest: str, answer: str) -> None:
    assert error_name(resolver.ask("bind", encoded(host), encoded(guest))) == answer


def test_there_may_be_512_binds_and_the_last_of_equal_guest_paths_counts(resolver: Resolver, tmp_path: Path) -> None:
    resolver.bind(str(tmp_path), "")
    for number in range(511):
        resolver.bind(f"/host/{number}", f"/{number}")
    assert error_name(resolver.ask("bind", encoded("/x"), encoded("/more"))) == "E2BIG"
    resolver.bind("/instead", "/7")
    assert resolver.resolve("/7", "nofollow").host == b"/instead"
    for number in {*range(511)} - {7}:
        assert resolver.resolve(f"/{number}", "nofollow").host == f"/host/{number}".encode()
        assert resolver.guest_name(f"/host/{number}/x") == f"/{number}/x".encode()
    assert resolver.guest_name("/host/7/x") is None


def test_too_much_text_is_refused(resolver: Resolver) -> None:
    answers = {
        error_name(resolver.ask("bind", encoded(f"/{number}" + "/x" * 1000), encoded(f"/{number}")))
        for number in range(200)
    }
    assert answers == {"0", "E2BIG"}


@pytest.mark.parametrize(
    ("host", "guest"),
    [
        ("/r", b""),
        ("/r/", b""),
        ("/r/u/b", b"/u/b"),
        ("/rx", None),
        ("/", None),
        ("/elsewhere", None),
        ("/h/x", b"/mnt/x"),
        ("/h/in/x", b"/deep/x"),
        ("/r/twice/x", b"/t/x"),  # bound too: the longest host prefix
        ("/r/mnt", None),  # covered by a mount
        ("/r/mnt/x", None),
        ("/same/x", b"/s/x"),  # at two places: the shorter guest path
        ("/half/x", b"/b/half/x"),  # the shorter guest path is covered
        ("/f", b"/etc/f"),
        ("/h/x (deleted)", b"/mnt/x (deleted)"),
    ],
)
def test_a_host_path_has_the_guest_name_that_leads_back(resolver: Resolver, host: str, guest: bytes | None) -> None:
    for bound in (
        ("/r", ""), ("/h", "/mnt"), ("/h/in", "/deep"), ("/r/twice", "/t"), ("/same", "/longer/s"), ("/same", "/s"),
        ("/half", "/a"), ("/half", "/b/half"), ("/cover", "/a/x"), ("/f", "/etc/f"),
    ):  # fmt: skip
        resolver.bind(*bound)
    assert resolver.guest_name(host) == guest


def test_with_the_hosts_root_as_root_every_path_is_its_own_name(resolver: Resolver) -> None:
    resolver.bind("/", "")
    resolver.bind("/", "/host")
    for path in (b"/", b"/usr/lib"):
        assert resolver.guest_name(path) == path.rstrip(b"/")


parts = st.lists(st.sampled_from(["a", "b", "c", "ab"]), max_size=3).map(
    lambda names: "".join(f"/{name}" for name in names)
)


@settings(deadline=None)
@given(st.lists(st.tuples(parts, parts), max_size=12), st.lists(parts, min_size=1, max_size=12))
def test_a_guest_name_leads_back_to_its_host_path(binds: list[tuple[str, str]], hosts: list[str]) -> None:
    with Resolver() as resolver:
        resolver.bind("/root", "")
        view = {"": "/root"}
        for host, guest in binds:
            view[guest] = f"/h{host}" if host else "/h"
            resolver.bind(view[guest], guest)
        for host in (f"/h{rest}" for rest in hosts):
            named = resolver.guest_name(host)
            leading_here = [
                guest + host[len(at) :] for guest, at in view.items() if host == at or host.startswith(at + "/")
            ]

            def back(name: str) -> str:
                mount = max((guest for guest in view if name == guest or name.startswith(guest + "/")), key=len)
                return view[mount] + name[len(mount) :]

            right = {name for name in leading_here if back(name) == host}
            assert named is None if not right else named is not None and named.decode() in right


def test_a_binds_guest_path_is_looked_up_in_the_view_so_far(resolver: Resolver, tmp_path: Path) -> None:
    (tmp_path / "root/usr/lib").mkdir(parents=True)
    (tmp_path / "root/lib").symlink_to("usr/lib")
    resolver.bind(str(tmp_path / "root"), "")
    assert decoded(resolver.ask("mount", encoded("/proc"), encoded("/lib/here"))) == b"/usr/lib/here"
    assert resolver.resolve("/lib/here").host == b"/proc"
