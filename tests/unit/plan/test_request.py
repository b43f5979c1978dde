# SPDX-License-Identifier: GPL-3.0-or-later
"""What the flags --bind and --env mean, and what is refused there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droiddeck_session.errors import UsageError
from droiddeck_session.plan.request import parse_bind, parse_variable


@pytest.mark.parametrize(
    ("text", "host", "guest"),
    [
        ("/a", "/a", "/a"),
        ("/a:/b", "/a", "/b"),
        ("/a/:/b/", "/a/", "/b"),
        ("/a//./b:/c/../d", "/a//./b", "/d"),
        ("/a b:/proc/x", "/a b", "/proc/x"),
        ("/a\nb:/c\udcff", "/a\nb", "/c\udcff"),
        ("/:/host", "/", "/host"),
    ],
)
def test_a_bind_that_can_be_meant(text: str, host: str, guest: str) -> None:
    bind = parse_bind(text, read_only=True, origin="flag --ro-bind")
    assert (bind.host, bind.guest, bind.read_only, bind.origin) == (host, guest, True, "flag --ro-bind")


@pytest.mark.parametrize(
    "text", ["", "a", "a:/b", "/a:b", "/a:", ":/b", "/a:/", "/a:/b/..", "/", "/a:/b:/c", "/a\0:/b", "/a:/b\0"]
)
def test_a_bind_that_cannot_be_meant_is_named_with_the_flag(text: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_bind(text, read_only=False, origin="flag --bind")
    assert refusal.value.code == "BIND_SYNTAX"
    assert refusal.value.message.startswith(f"flag --bind {text!r}: ")
    assert refusal.value.hint


@pytest.mark.parametrize("text", ["/a:/b:ro", "/a:ro"])
def test_a_read_only_bind_is_pointed_to_its_flag(text: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_bind(text, read_only=False, origin="flag --bind")
    assert "--ro-bind" in refusal.value.hint
    with pytest.raises(UsageError) as other:
        parse_bind("/a:b", read_only=False, origin="flag --bind")
    assert "--ro-bind" not in other.value.hint


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True), st.text(st.characters(exclude_characters="\0")))
def test_a_variable_is_split_at_its_first_equals_sign(name: str, value: str) -> None:
    assert parse_variable(f"{name}={value}") == (name, value)


@pytest.mark.parametrize("text", ["", "A", "=x", "1A=x", "A B=x", "A-B=x", "Ä=x", "A=x\0"])
def test_what_is_no_variable_is_refused_without_its_value(text: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_variable(text)
    assert refusal.value.code == "VARIABLE_SYNTAX"
    assert "x" not in refusal.value.message.removeprefix("flag --env: ").partition(" is ")[0]
