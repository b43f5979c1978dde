# SPDX-License-Identifier: GPL-3.0-or-later
"""The fast path's key and variables, when it is off and why, and a plan's concrete form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plan_hosts import ANDROID_APP, DEBIAN_ROOT, TRACER, run

from droiddeck_session.plan.fast_path import bound, key_of
from droiddeck_session.plan.request import Request
from droiddeck_session.settings import FAST_PATH_VARIABLES, FastPathSettings, GuestSettings, Settings

if TYPE_CHECKING:
    from droiddeck_session.plan.model import Plan

FOLDER = "/home/user/.local/state/droiddeck-session/sessions/2026-01-01-01-true"
TRACED = DEBIAN_ROOT.having(capabilities=TRACER)


def values(plan: Plan) -> dict[str, str]:
    return {entry.name: entry.value for entry in plan.environment}


def test_the_key_is_that_of_an_independent_sum() -> None:
    # printf '/root\n/dev\n/a:/b' | sha256sum
    assert key_of("/root", ["/dev", "/a:/b"]) == "098b4d5601fee0b42a137fa1"


def test_argv_key_and_variable_have_the_same_binds() -> None:
    plan = bound(ANDROID_APP.plan(Request(kind="steam")), FOLDER, "t" * 32)
    specs = plan.bind_specs()
    assert values(plan)["PROOT_FP_BINDS"].split("|") == list(specs)
    assert values(plan)["PROOT_FP_ROOT"] == plan.guest.root
    assert values(plan)["PROOT_FP_KEY"] == plan.fast_path.key == key_of(plan.guest.root, specs)
    assert len(plan.fast_path.key or "") == 24
    assert values(plan)["DROIDDECK_SESSION"] == "t" * 32
    assert [entry.name for entry in plan.environment][-4:] == [*FAST_PATH_VARIABLES, "DROIDDECK_SESSION"]


def test_the_concrete_form_names_the_folder_and_nothing_symbolic() -> None:
    plan = bound(TRACED.plan(run()), FOLDER, "t" * 32)
    assert plan.session == FOLDER
    assert "@session@" not in plan.to_json()
    assert f"{FOLDER}/tmp" in [bind.host for bind in plan.binds]


def test_a_user_s_path_that_looks_like_the_placeholder_is_left_alone() -> None:
    machine = DEBIAN_ROOT.having(host={"/@session@": "directory"})
    plan = bound(machine.plan(run(("/@session@", "/mnt"), variables=(("A", "@session@"),))), FOLDER, "t" * 32)
    assert "/@session@" in [bind.host for bind in plan.binds]
    assert values(plan)["A"] == "@session@"


def test_another_folder_or_bind_gives_another_key() -> None:
    machine = TRACED.having(host={"/a": "directory"})
    plans = [bound(machine.plan(run()), FOLDER, "t"), bound(machine.plan(run()), FOLDER + "2", "t")]
    plans.append(bound(machine.plan(run(("/a", "/b"))), FOLDER, "t"))
    assert len({plan.fast_path.key for plan in plans}) == 3


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (DEBIAN_ROOT.plan(run()), "does not offer"),
        (
            TRACED.having(
                capabilities=TRACER.model_copy(update={"host_environment": (("PROOT_NO_SECCOMP", "1"),)})
            ).plan(run()),
            "PROOT_NO_SECCOMP",
        ),
        (TRACED.plan(run(), settings=Settings(fast_path=FastPathSettings(enabled=False))), "fast_path.enabled"),
        (TRACED.having(uid=1000).plan(run(), settings=Settings(guest=GuestSettings(identity="root"))), "emulated"),
        (TRACED.having(root="/a|b").plan(run()), "|"),
        (TRACED.having(host={"/a|b": "file"}).plan(run(("/a|b", "/c"))), "/a|b"),
        (TRACED.having(host={"/a": "file"}).plan(run(("/a", "/c" * 512))), "1023"),
    ],
    ids=["backend", "seccomp", "setting", "identity", "root", "bind", "length"],
)
def test_it_is_off_with_the_reason_and_the_session_runs_all_the_same(plan: Plan, why: str) -> None:
    for form in (plan, bound(plan, FOLDER, "t")):
        assert not form.fast_path.enabled
        assert why in form.fast_path.why_off
        assert form.fast_path.key is None
        assert not set(FAST_PATH_VARIABLES) & set(values(form))


def test_it_is_on_with_256_binds_and_off_with_one_more() -> None:
    base = len(TRACED.plan(run()).binds)
    machine = TRACED.having(host={"/a": "file"})
    for more, on in ((256 - base, True), (257 - base, False)):
        plan = machine.plan(run(*(("/a", f"/mnt/{number}") for number in range(more))))
        assert plan.fast_path.enabled is on
        # Never a part of the list.
        assert len(plan.binds) == base + more


def test_a_list_longer_than_one_variable_can_be_turns_it_off() -> None:
    # Case 56.
    machine = TRACED.having(host={"/a": "file"})
    plan = machine.plan(run(*(("/a", f"/{'m' * 250}/{'n' * 250}/{'o' * 250}/{number}") for number in range(200))))
    assert "one variable" in plan.fast_path.why_off


def test_a_limit_that_only_the_real_folder_passes_turns_it_off_when_bound() -> None:
    symbolic = TRACED.plan(run())
    assert symbolic.fast_path.enabled
    for folder in ("/state|x/1", "/state:x/1", "/" + "s" * 1023):
        plan = bound(symbolic, folder, "t")
        assert not plan.fast_path.enabled
        assert not set(FAST_PATH_VARIABLES) & set(values(plan))


def test_two_thousand_binds_are_planned() -> None:
    # Case 56: nothing is quadratic enough to be felt, the time limit of the test holds it.
    machine = TRACED.having(host={"/a": "file"})
    plan = machine.plan(run(*(("/a", f"/mnt/{number}/x") for number in range(2000))))
    assert len({bind.guest for bind in plan.binds}) == len(plan.binds) > 2000
