# SPDX-License-Identifier: GPL-3.0-or-later
"""Laws of templates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droiddeck_session.templates import expand, is_template, literal, placeholders

text = st.text(st.sampled_from("{}ab./\udcff"))


@given(text)
def test_a_literal_expands_to_itself(given_text: str) -> None:
    assert is_template(literal(given_text))
    assert expand(literal(given_text), {}) == given_text
    assert placeholders(literal(given_text)) == []


@given(text, text)
def test_what_is_put_in_is_not_looked_at_again(value: str, around: str) -> None:
    assert expand(f"{literal(around)}{{a}}{literal(around)}", {"a": value}) == around + value + around


def test_a_name_that_stands_for_nothing_makes_nothing() -> None:
    assert expand("{a}/{b.c}", {"a": "x"}) is None
    assert expand("{a}/{b.c}", {"a": "x", "b.c": "y"}) == "x/y"
    assert placeholders("{a}{{b}}{c}") == ["a", "c"]


@pytest.mark.parametrize("broken", ["{", "}", "{A}", "{}", "{a", "{{a}", "{1}"])
def test_a_stray_brace_is_no_template(broken: str) -> None:
    assert not is_template(broken)
