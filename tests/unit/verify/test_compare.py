# SPDX-License-Identifier: GPL-3.0-or-later
"""What counts as a difference: any other answer or effect, but not the refusal that was agreed on."""

from __future__ import annotations

import pytest

from droiddeck_session.diagnostics.verify.compare import NOT_ASKED, compare
from droiddeck_session.diagnostics.verify.run import Answer, Run


def run(backend: str, ending: str = "", **answers: Answer) -> Run:
    return Run(backend=backend, answers=answers, ending=ending)


def said(text: str, *changes: str, refusal: str = "") -> Answer:
    return Answer(path_class="plain", refusal=refusal, text=text, changes=changes)


def test_equal_answers_are_equal() -> None:
    found = compare(run("chroot", a=said("0", "+ x")), run("other", a=said("0", "+ x")))
    assert (found.compared, found.refused, found.differences, found.equal) == (1, 0, (), True)


@pytest.mark.parametrize("other", [said("1", "+ x"), said("0"), said("0", "+ y"), said("ENOSYS")])
def test_another_answer_or_effect_differs(other: Answer) -> None:
    found = compare(run("chroot", a=said("0", "+ x")), run("other", a=other))
    assert [(one.case, one.expected) for one in found.differences] == [("a", ("0", "+ x"))]
    assert not found.equal


def test_a_refusal_is_agreed_on_only_where_it_may_be_and_without_an_effect() -> None:
    truth = run("chroot", a=said("0", refusal="ENOSYS"))
    agreed = compare(truth, run("other", a=said("ENOSYS", refusal="ENOSYS")))
    assert (agreed.refused, agreed.equal) == (1, True)
    assert not compare(truth, run("other", a=said("ENOSYS", "+ x", refusal="ENOSYS"))).equal
    assert not compare(truth, run("other", a=said("EPERM", refusal="ENOSYS"))).equal
    assert not compare(truth, run("other", a=said("EBUSY", refusal="ENOSYS"))).equal


def test_a_case_that_was_not_answered_differs() -> None:
    found = compare(run("chroot", a=said("0")), run("other", ending="killed by SIGSEGV"))
    assert found.differences[0].got == (NOT_ASKED,)
    assert not found.equal


def test_differences_are_grouped_by_call_and_class_of_path() -> None:
    names = ("stat:/a", "stat@bound:b", "rename-to:/a")
    truth = Run(backend="chroot", answers={name: said("0") for name in names})
    other = Run(backend="other", answers={name: said("ENOENT") for name in names})
    groups = compare(truth, other).groups()
    assert {key: [one.case for one in found] for key, found in groups.items()} == {
        ("stat", "plain"): ["stat:/a", "stat@bound:b"],
        ("rename-to", "plain"): ["rename-to:/a"],
    }
