#!/usr/bin/python3 -ISB
# SPDX-License-Identifier: GPL-3.0-or-later
"""verify_run: ask every awkward question in this guest and print the answers, one JSON list in a line.

    verify_run.py             the chosen cases: a call much like another one is tried on some paths only
    verify_run.py PATTERN...  of all cases those whose id a pattern matches, as fnmatch(3) has it

A line is [id, class, changes, agreed refusal, answer]. After each that may change the tree a byte is awaited: the host
has looked at what it did and undone it by then; `!` says that folders which are held open may have been made anew.
"""

from __future__ import annotations

import fnmatch
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import verify_cases
from verify_calls import error_name

TYPE_CHECKING = False  # the name that checkers know; importing typing would cost a start
if TYPE_CHECKING:
    from types import FrameType

# Seconds that one question may take; a call that hangs is interrupted, and that is the answer.
PATIENCE = 10
# A walk that the kernel has to begin again (because something else is renamed meanwhile) goes on counting links, so the
# fortieth may be one too many: asked again it is not.
ELOOP_ASKED_AGAIN = 8
# Where the conversation goes on: 0 and 1 are what a case may ask about.
COMMANDS, ANSWERS = 120, 121


class Hung(Exception):  # noqa: N818 - it is an answer
    """A question that was not answered in time."""


def _hung(_number: int, _frame: FrameType | None) -> None:
    raise Hung


def settle() -> None:
    """Move the conversation to descriptors that no case uses; 0 to 2 become /dev/null, so every run has the same."""
    os.dup2(0, COMMANDS, inheritable=False)
    os.dup2(1, ANSWERS, inheritable=False)
    null = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1):
        os.dup2(null, number)
    os.close(null)


def settled_answer(case: verify_cases.Case) -> str:
    """Ask, and ask again where an answer may be of the moment."""
    said = answer(case)
    for _ in range(ELOOP_ASKED_AGAIN if case.path_class == "chain" else 0):
        if said != "ELOOP":
            break
        said = answer(case)
    return said


def answer(case: verify_cases.Case) -> str:
    """Ask one question and return the answer: a text, or the name of the error."""
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        return case.ask()
    except OSError as error:
        return error_name(error)
    except Hung:
        return "HUNG"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main(patterns: list[str]) -> None:
    """Ask and tell."""
    settle()
    os.umask(0o022)
    signal.signal(signal.SIGALRM, _hung)
    surroundings = verify_cases.Surroundings()
    with open(ANSWERS, "w", encoding="ascii", buffering=65536) as out:
        for case in verify_cases.all_cases(surroundings):
            if not (any(fnmatch.fnmatchcase(case.id, pattern) for pattern in patterns) if patterns else case.chosen):
                continue
            line = [case.id, case.path_class, case.changes, case.refusal, settled_answer(case)]
            out.write(json.dumps(line) + "\n")
            if case.changes:
                out.flush()
                told = os.read(COMMANDS, 1)
                if not told:
                    return
                surroundings.made_anew |= told == b"!"


if __name__ == "__main__":
    main(sys.argv[1:])
