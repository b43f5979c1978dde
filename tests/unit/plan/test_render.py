# SPDX-License-Identifier: GPL-3.0-or-later
"""The HostProcess string's law, and that a person is told everything of a plan in visible characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_hosts import ANDROID_APP, DEBIAN_ROOT, DEBIAN_USER, Machine, run

from droiddeck_session.errors import PlanError
from droiddeck_session.plan.render import hostprocess, render, split_hostprocess
from droiddeck_session.plan.request import Request

if TYPE_CHECKING:
    from droiddeck_session.plan.model import Plan

word = st.text(st.one_of(st.sampled_from(" \\\n\t\"'$|:=\udcff"), st.characters(exclude_characters="\0")), min_size=1)


@given(st.lists(word))
def test_the_string_splits_into_the_same_arguments(argv: list[str]) -> None:
    assert split_hostprocess(hostprocess(argv)) == argv


def test_the_string_is_as_android_s_splitter_has_it() -> None:
    assert hostprocess(["a b", "c\\d", "#1 SMP"]) == "a\\ b c\\\\d #1\\ SMP"


@pytest.mark.parametrize("argv", [[""], ["a", "", "b"]])
def test_an_empty_argument_is_refused_with_its_place(argv: list[str]) -> None:
    with pytest.raises(PlanError, match=f"empty argument at position {argv.index('')}") as refusal:
        hostprocess(argv)
    assert refusal.value.code == "EMPTY_ARGUMENT"


@pytest.mark.parametrize("machine", [DEBIAN_ROOT, DEBIAN_USER, ANDROID_APP])
def test_a_person_is_told_every_bind_and_variable_with_reason_and_origin(machine: Machine) -> None:
    plan: Plan = machine.plan(Request(kind="steam"))
    lines = render(plan).splitlines()
    for bind in plan.binds:
        at = next(index for index, line in enumerate(lines) if line.startswith(f"  {bind.guest}") and bind.host in line)
        assert lines[at + 1].strip() == f"{bind.reason}; {bind.origin}"
    for entry in plan.environment:
        at = lines.index(f"  {entry.name}={entry.value}")
        assert lines[at + 1].strip() == f"{entry.reason}; {entry.origin}"


def test_what_is_left_out_made_and_off_is_told() -> None:
    machine = DEBIAN_USER.having(host={"/run/user/1000/wayland-1": "missing", "/a": "directory"})
    text = render(machine.plan(run(("/a", "/mnt/new"))))
    assert "/run/droiddeck/wayland-0 <- /run/user/1000/wayland-1\n      there is no such file" in text
    assert "fast path  off: backend bwrap does not offer it" in text
    assert "made in the rootfs to mount on\n  /mnt/new\n      a folder" in text


def test_control_characters_and_foreign_bytes_reach_no_terminal() -> None:
    odd = "/\x1b[31m\n\udcff"
    text = render(DEBIAN_ROOT.having(host={odd: "file"}).plan(run((odd, "/mnt"), variables=(("A", "\x07"),))))
    assert all(character.isprintable() or character == "\n" for character in text)
    assert "/mnt <- /\\x1b[31m\\n\\udcff (required)" in text
