# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls under the tracer: registers, restarts, cancellation, stacks and crowds, as in the kernel's truth."""

from __future__ import annotations

import shutil

import pytest
from traced import SmallGuest, answers, built


def emptied(guest: SmallGuest, name: str) -> str:
    """Return the guest path of a new empty folder."""
    shutil.rmtree(guest.work / name, ignore_errors=True)
    (guest.work / name).mkdir()
    return f"/spot/{name}"


@pytest.mark.parametrize("name", ["registers", "restart", "tiny_stack", "cancel"])
def test_a_caller_sees_what_the_kernel_shows_it(guest: SmallGuest, name: str) -> None:
    program = guest.add(built(name))
    truth = answers(guest.truth(program, emptied(guest, "x")))
    assert answers(guest.traced(program, emptied(guest, "x"))) == truth
    assert truth[0] == 0


@pytest.mark.parametrize(
    ("kind", "count"),
    [("threads", 8), ("processes", 100), ("blocked", 200)],
)
def test_many_callers_at_once_do_not_mix_their_paths(guest: SmallGuest, kind: str, count: int) -> None:
    program = guest.add(built("crowd"))
    done = guest.traced(program, kind, str(count), emptied(guest, "x"))
    assert answers(done) == (0, [f"{kind}: 0 wrong"], "")


def test_more_blocked_calls_than_scratch_memory_can_still_be_ended(guest: SmallGuest) -> None:
    program = guest.add(built("crowd"))
    done = guest.traced("/usr/bin/timeout", "-k", "5", "3", program, "blocked", "2700", emptied(guest, "x"))
    assert done.returncode == 124
