# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole plan for a few machines, byte for byte: a change of what sessions do shows as a change of these files.

To write them anew after a change that is meant: UPDATE_GOLDEN=1 python -m pytest tests/golden
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from plan_hosts import MACHINES, run

from droiddeck_session.plan.model import Plan
from droiddeck_session.plan.request import Request

FOLDER = Path(__file__).parent
REQUESTS = {
    "run": run(("/home/user", "/mnt/home"), argv=("sh", "-c", "exit 3"), variables=(("A", "b c"),)),
    "steam": Request(kind="steam", url="steam://rungameid/480"),
}


def text_of(plan: Plan) -> str:
    return json.dumps(plan.model_dump(mode="python", by_alias=True), indent=1) + "\n"


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", REQUESTS)
def test_the_plan_is_the_recorded_one(machine: str, kind: str) -> None:
    request = REQUESTS[kind]
    if MACHINES[machine].android:
        request = request.model_copy(update={"binds": ()})
    plan = MACHINES[machine].plan(request)
    path = FOLDER / f"{machine}.{kind}.json"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(text_of(plan))
    assert text_of(plan) == path.read_text(), "if that is meant: UPDATE_GOLDEN=1 python -m pytest tests/golden"
    assert Plan.from_json(path.read_text()) == plan


def test_no_record_is_left_over() -> None:
    recorded = {path.name for path in FOLDER.glob("*.json")}
    assert recorded == {f"{machine}.{kind}.json" for machine in MACHINES for kind in REQUESTS}
