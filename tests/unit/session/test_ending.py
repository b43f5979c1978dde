# SPDX-License-Identifier: GPL-3.0-or-later
"""From what was seen to the ending: every status, and what is a failure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droiddeck_session.plan.capabilities import Capabilities
from droiddeck_session.session.ending import Seen, conclude
from droiddeck_session.session.wait_status import WaitStatus, signal_name

GOOD = Capabilities(backend="good", available=True, main_status=True, signal_status=True)
STOCK = Capabilities(backend="stock", available=True, stays_parent=True, traces=True)
CALM = {
    "main": None, "wrapper": None, "had_leftovers": False, "never_started": False, "tracer_died": False,
    "killed": False, "stop_requested": False, "survivors": (),
}  # fmt: skip
statuses = st.one_of(
    st.integers(0, 255).map(WaitStatus), st.integers(1, 64).map(lambda number: WaitStatus(None, number))
)


def seen(**fields: object) -> Seen:
    return Seen(**{**CALM, **fields})  # type: ignore[arg-type]


@given(main=statuses, wrapper=st.one_of(st.none(), statuses), had_leftovers=st.booleans())
def test_the_main_programs_own_ending_counts_whatever_the_wrapper_tells(
    main: WaitStatus, wrapper: WaitStatus | None, *, had_leftovers: bool
) -> None:
    ending = conclude(seen(main=main, wrapper=wrapper, had_leftovers=had_leftovers), STOCK)
    assert (ending.status, ending.signal, ending.main_status_known) == (main.status, main.signal, True)
    assert (ending.failure == "") is (main.status == 0)


@given(statuses)
def test_a_session_that_was_asked_to_end_has_not_failed(main: WaitStatus) -> None:
    assert conclude(seen(main=main, stop_requested=True), GOOD).failure == ""


def test_a_tracers_word_counts_only_if_nothing_ended_after_the_main_program() -> None:
    told = WaitStatus(7)
    assert conclude(seen(wrapper=told), STOCK).status == 7
    assert conclude(seen(wrapper=told, had_leftovers=True), GOOD).status == 7
    lost = conclude(seen(wrapper=told, had_leftovers=True), STOCK)
    assert (lost.status, lost.failure, lost.main_status_known) == (125, "STATUS_LOST", False)
    assert lost.reason == (
        "the main program's exit status is lost: "
        "the stock backend tells the status of the process that ended last (exit status 7)"
    )


def test_survivors_are_named() -> None:
    ending = conclude(seen(main=WaitStatus(0), survivors=("cat (12)", "dd (13)")), GOOD)
    assert (ending.status, ending.failure) == (125, "SURVIVORS")
    assert ending.reason == "these processes could not be ended: cat (12), dd (13)"


def test_a_dead_tracer_is_our_failure() -> None:
    ending = conclude(seen(wrapper=WaitStatus(None, 9), tracer_died=True), STOCK)
    assert (ending.status, ending.failure) == (125, "TRACER_DIED")


def test_a_kill_is_explained_only_if_it_was_not_ours() -> None:
    killed = WaitStatus(None, 9)
    assert "Android 12" in conclude(seen(main=killed), GOOD).reason
    assert conclude(seen(main=killed, killed=True), GOOD).reason == ""


@pytest.mark.parametrize(
    ("status", "words"),
    [(WaitStatus(143), "exit status 143"), (WaitStatus(None, 15), "killed by SIGTERM (signal 15)"),
     (WaitStatus(None, 40), "killed by SIGRTMIN+6 (signal 40)")],
)  # fmt: skip
def test_an_exit_and_a_signal_of_one_status_differ_in_words(status: WaitStatus, words: str) -> None:
    assert status.in_words() == words


def test_signals_have_their_names() -> None:
    assert signal_name(9) == "SIGKILL"
