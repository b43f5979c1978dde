# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of a session: random interleavings of requests and reports against scripted supervisors."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from droiddeck_session.session.states import LIVE, OVER, Action, Life, Report, Request, State, ask, tell


@dataclass
class Generation:
    """A scripted supervisor: whether its tree lives, and what it has yet to tell, in its order."""

    tree: bool = True
    supervised: bool = True
    frozen: bool = False
    asked_to_end: bool = False
    unheard: list[Report] = field(default_factory=list)
    endings: int = 0


class Interleavings(RuleBasedStateMachine):
    """Whatever is asked and whenever a supervisor's words arrive, the states of 9.4 of the specification hold."""

    def __init__(self) -> None:
        super().__init__()
        self.life = Life()
        self.generations: dict[int, Generation] = {}

    def do(self, action: Action | None) -> None:
        if action is None:
            return
        number = self.life.generation
        if action == "spawn":
            assert not any(one.tree for one in self.generations.values()), "two live trees"
            self.generations[number] = Generation(unheard=["begun"])
            return
        now = self.generations[number]
        if action == "recover":
            assert not now.supervised
            now.tree = False
            now.unheard.append("failed")
        elif now.supervised and now.tree:
            if action in {"stop", "kill"}:
                now.asked_to_end, now.frozen = True, False
                now.unheard.append("stopping")
            elif action == "suspend" and not now.asked_to_end:
                now.frozen = True
                now.unheard.append("frozen")
            elif action == "resume" and now.frozen:
                now.frozen = False
                now.unheard.append("thawed")

    def supervised(self) -> list[Generation]:
        return [one for one in self.generations.values() if one.supervised and one.tree]

    @rule(request=st.sampled_from(("start", "stop", "kill", "suspend", "resume")))
    def somebody_asks(self, request: Request) -> None:
        before = self.life
        step = ask(before, request)
        assert step.refusal is None or step.life == before, "a refused request changed something"
        assert step.refusal is None or step.action is None
        self.life = step.life
        self.do(step.action)

    @rule()
    def two_stops_are_one(self) -> None:
        first = ask(self.life, "stop")
        again = ask(first.life, "stop")
        assert again.life == first.life
        assert again.action is None

    @precondition(lambda self: self.supervised())
    @rule(ready=st.booleans())
    def a_tree_goes_on(self, ready: bool) -> None:  # noqa: FBT001 - hypothesis gives it by name
        now = self.supervised()[-1]
        if ready and not now.frozen and not now.asked_to_end:
            now.unheard.append("ready")

    @precondition(lambda self: self.supervised())
    @rule(report=st.sampled_from(("ended", "failed")))
    def a_tree_ends(self, report: Report) -> None:
        now = self.supervised()[-1]
        now.tree = False
        now.unheard.append(report)

    @precondition(lambda self: self.supervised())
    @rule()
    def a_supervisor_is_killed(self) -> None:
        now = self.supervised()[-1]
        now.supervised = False
        now.unheard.append("lost")

    @precondition(lambda self: any(one.unheard for one in self.generations.values()))
    @rule(data=st.data())
    def a_word_arrives(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from([n for n, one in self.generations.items() if one.unheard]))
        report = self.generations[number].unheard.pop(0)
        before = self.life
        step = tell(before, number, report)
        if number != before.generation or before.state in OVER:
            assert step.life == before, "a stale word was heeded"
            assert step.action is None
        if before.state in LIVE and step.life.state in OVER:
            self.generations[number].endings += 1
        self.life = step.life
        self.do(step.action)

    @rule(back=st.integers(0, 3), report=st.sampled_from(("ended", "failed", "ready", "lost", "frozen", "stopping")))
    def a_word_of_what_is_over_arrives_again(self, back: int, report: Report) -> None:
        if back or self.life.state in OVER:
            step = tell(self.life, self.life.generation - back, report)
            assert (step.life, step.action) == (self.life, None)

    @invariant()
    def there_is_at_most_one_live_tree(self) -> None:
        assert sum(one.tree for one in self.generations.values()) <= 1

    @invariant()
    def what_is_over_has_left_nothing_and_has_ended_once(self) -> None:
        for number, one in self.generations.items():
            over = number < self.life.generation or self.life.state in OVER
            assert one.endings == (1 if over else 0)
            assert not (over and one.tree)


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("state", sorted(LIVE))
def test_a_live_session_is_not_started_again(state: State) -> None:
    step = ask(Life(3, state), "start")
    assert step.refusal is not None
    assert step.refusal.code == "SESSION_ACTIVE"


@pytest.mark.parametrize("request_", ["stop", "kill"])
@pytest.mark.parametrize("state", sorted(OVER))
def test_nothing_is_not_stopped(state: State, request_: Request) -> None:
    step = ask(Life(3, state), request_)
    assert step.refusal is not None
    assert step.refusal.code == "NO_ACTIVE_SESSION"


def test_a_stop_that_comes_while_a_session_is_prepared_reaches_it() -> None:
    step = ask(ask(Life(), "start").life, "stop")
    assert (step.action, step.life.state) == ("stop", "stopping")
    assert tell(step.life, 1, "begun").life.state == "stopping"
    assert tell(step.life, 1, "ready").life.state == "stopping"


def test_a_session_that_was_ready_is_so_again_when_it_is_resumed() -> None:
    assert tell(Life(1, "suspended", was_ready=True), 1, "thawed").life.state == "ready"
    assert tell(Life(1, "suspended"), 1, "thawed").life.state == "starting"


def test_only_what_is_suspended_is_resumed() -> None:
    step = ask(Life(1, "ready"), "resume")
    assert step.refusal is not None
    assert step.refusal.code == "SESSION_NOT_SUSPENDED"


def test_a_dead_supervisor_is_not_the_end_before_its_tree_is_gone() -> None:
    step = tell(Life(1, "ready"), 1, "lost")
    assert (step.action, step.life.state) == ("recover", "stopping")
    assert tell(step.life, 1, "failed").life.state == "failed"
