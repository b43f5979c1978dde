# SPDX-License-Identifier: GPL-3.0-or-later
"""Laws of guest paths as texts, of the order of mounts, and of the way through binds and back."""

from __future__ import annotations

import posixpath

import pytest
from bind_lookup import covering, guest_of, host_of
from hypothesis import given
from hypothesis import strategies as st

from droiddeck_session.plan.guest_paths import ancestors, below, in_mount_order, mountable, normalise
from droiddeck_session.plan.model import Bind

# Few names, so that paths meet; one with all that must survive.
name = st.sampled_from(["a", "b", "c", "co:lon pi|pe\n\udcff"])
rough = st.lists(st.one_of(name, st.sampled_from(["", ".", ".."])), max_size=8).map(lambda parts: "/" + "/".join(parts))
path = st.lists(name, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
ROOT = "/the root"


def bind(host: str, guest: str) -> Bind:
    return Bind(host=host, guest=guest, reason="law", origin="test", directory=True)


binds = st.lists(st.builds(bind, path.map(lambda host: f"/host{host}"), path), max_size=8)


@given(rough)
def test_normalising_is_what_posix_says_and_done_once(text: str) -> None:
    found = normalise(text)
    assert found == posixpath.normpath("/" + text.lstrip("/"))
    assert normalise(found) == found
    assert normalise(text + "/") == found


@pytest.mark.parametrize("text", ["", "mnt", "./mnt", "../mnt", "/m\0nt"])
def test_what_is_no_absolute_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"absolute|NUL"):
        normalise(text)


@pytest.mark.parametrize("text", ["/", "//", "/.", "/mnt/..", "/../.."])
def test_nothing_is_bound_at_the_root_itself(text: str) -> None:
    with pytest.raises(ValueError, match="root itself"):
        mountable(text)


@given(path, path)
def test_below_and_ancestors_agree(inner: str, top: str) -> None:
    rest = below(inner, top)
    assert (rest is not None) == (inner == top or top in ancestors(inner))
    assert rest is None or top + rest == inner


@given(st.lists(st.tuples(path, st.integers()), max_size=12))
def test_mount_order_keeps_the_last_of_each_and_puts_parents_first(items: list[tuple[str, int]]) -> None:
    ordered = in_mount_order(items, lambda item: item[0])
    assert dict(ordered) == dict(items)
    places = [place for place, _ in ordered]
    assert len(places) == len(set(places))
    for index, place in enumerate(places):
        assert not set(ancestors(place)) & set(places[index:])
    assert in_mount_order(ordered, lambda item: item[0]) == ordered


def test_mount_order_is_otherwise_the_order_of_the_request() -> None:
    asked = ["/z", "/a/b/c", "/m", "/a", "/z"]
    assert in_mount_order(asked, str) == ["/a", "/a/b/c", "/m", "/z"]


@given(binds, path)
def test_the_longest_prefix_wins_and_of_equals_the_last(given_binds: list[Bind], guest: str) -> None:
    matching = [entry for entry in given_binds if below(guest, entry.guest) is not None]
    longest = max((len(entry.guest) for entry in matching), default=0)
    expected = [entry for entry in matching if len(entry.guest) == longest]
    assert covering(given_binds, guest) == (expected[-1] if expected else None)


@given(binds, path)
def test_a_host_path_is_the_bind_s_with_the_rest(given_binds: list[Bind], guest: str) -> None:
    cover = covering(given_binds, guest)
    expected = ROOT + guest if cover is None else cover.host + (below(guest, cover.guest) or "")
    assert host_of(given_binds, guest, root=ROOT) == expected
    # Mounting order changes nothing of it.
    assert host_of(in_mount_order(given_binds, lambda entry: entry.guest), guest, root=ROOT) == expected


@given(binds, path)
def test_the_way_back_leads_to_the_same_host_path(given_binds: list[Bind], guest: str) -> None:
    host = host_of(given_binds, guest, root=ROOT)
    back = guest_of(given_binds, host, root=ROOT)
    assert back is not None
    assert host_of(given_binds, back, root=ROOT) == host


@given(binds)
def test_what_no_bind_shows_has_no_guest_path(given_binds: list[Bind]) -> None:
    assert guest_of(given_binds, "/elsewhere", root=ROOT) is None


def test_a_place_that_another_bind_covers_shows_nothing() -> None:
    over = [bind("/host/a", "/mnt"), bind("/host/b", "/mnt/x")]
    assert guest_of(over, "/host/a/x/y", root=ROOT) is None
    assert guest_of(over, "/host/a/z", root=ROOT) == "/mnt/z"


def test_the_root_itself() -> None:
    assert host_of([], "/", root=ROOT) == ROOT
    assert guest_of([], ROOT, root=ROOT) == "/"
    assert host_of([bind("/", "/host")], "/host/etc", root=ROOT) == "/etc"
