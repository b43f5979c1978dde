# SPDX-License-Identifier: GPL-3.0-or-later
"""`steam` and `desktop` on a guest without a client: the stand-in tree runs, says what it is, every ending is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import CommandLine

pytestmark = pytest.mark.real


def test_the_chain_runs_down_to_the_game(cli: CommandLine) -> None:
    ended = cli("steam", "steam://rungameid/480")
    assert ended.returncode == 0, ended.stderr
    told = ended.stderr.decode()
    assert "stand-in" in told
    for name in ("steam", "reaper", "proton", "game"):
        assert f"stand-in {name}" in told


def test_a_url_is_not_needed(cli: CommandLine) -> None:
    assert cli("steam").returncode == 0


@pytest.mark.parametrize(("script", "status"), [("status=7", 7), ("signal=11", 139)])
def test_the_client_s_ending_is_the_session_s(cli: CommandLine, script: str, status: int) -> None:
    ended = cli("steam", "--env", f"DROIDDECK_STAND_IN_STEAM={script}")
    assert ended.returncode == status


def test_a_client_that_updates_itself_is_started_again_at_most_three_times(cli: CommandLine) -> None:
    # Case 48 of the launcher's list.
    ended = cli("steam", "steam://rungameid/480", "--env", "DROIDDECK_STAND_IN_STEAM=status=42")
    assert ended.returncode == 42
    assert ended.stderr.decode().count("stand-in steam: this is an open stand-in") == 4


def test_desktop_has_a_stand_in_too(cli: CommandLine) -> None:
    ended = cli("desktop")
    assert ended.returncode == 0
    assert "stand-in desktop" in ended.stderr.decode()


def test_the_plan_shows_the_chain(cli: CommandLine) -> None:
    plan = json.loads(cli("plan", "steam", "steam://rungameid/480", "--json").stdout)["plan"]
    assert plan["argv"][0] == "/opt/droiddeck/droiddeck-inner"
    assert "steam://rungameid/480" in plan["argv"]
    assert "steam" in plan["stand_ins"]
