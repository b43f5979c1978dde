# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in client: its tree, games, one running instance and endings, alone and below droiddeck-inner."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from unit.programs.conftest import Staged

STEAM, INNER, HELPER = "stand-in/steam", "droiddeck-inner", "stand-in/web-helper"
SCRIPT, GAME_SCRIPT = "DROIDDECK_STAND_IN_STEAM", "DROIDDECK_STAND_IN_GAME"
QUICK = {GAME_SCRIPT: "seconds=0.01", "DROIDDECK_STAND_IN_PROTON": "linger=0"}


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_without_a_script_it_runs_a_demo_game_and_ends_well(staged: Staged) -> None:
    ended = staged.run(INNER, "steam", "--", staged.path(STEAM), "-gamepadui")
    lines = ended.stderr.decode().splitlines()
    assert ended.returncode == 0
    assert ended.stdout == b""
    assert [line.split(":")[0] for line in lines] == [
        *["stand-in steam"] * 3,
        "stand-in reaper",
        "stand-in proton",
        *["stand-in game"] * 2,
        "stand-in steam",
    ]
    assert "open stand-in" in lines[0]
    staged.wait_until_gone()


def test_the_tree_has_steams_shape(staged: Staged) -> None:
    steam = staged.start(STEAM, **{SCRIPT: "game=480 renderers=2", GAME_SCRIPT: "stay"})
    staged.wait_for_output("stand-in game: ")
    (browser,) = (pid for pid in staged.alive("web-helper") if parent(pid) == steam.pid)
    assert [parent(pid) for pid in staged.alive("web-helper") if pid != browser] == [browser] * 2
    (reaper,) = staged.alive("reaper")
    (game,) = staged.alive("game")
    assert parent(reaper) == steam.pid
    assert parent(game) == reaper
    command = Path(f"/proc/{reaper}/cmdline").read_bytes().split(b"\0")
    assert [os.fsdecode(word) for word in command[-8:-1]] == [
        "SteamLaunch",
        "AppId=480",
        "--",
        staged.path("droiddeck-game-env"),
        staged.path("stand-in/proton"),
        "waitforexitandrun",
        staged.path("stand-in/game"),
    ]
    steam.terminate()
    assert steam.wait(30) == -signal.SIGTERM
    staged.wait_until_gone("web-helper")


@pytest.mark.parametrize(
    ("words", "app"),
    [
        (["steam://rungameid/730"], "730"),
        (["steam://run/730"], "730"),
        (["-silent", "-applaunch", "730"], "730"),
        ([f"steam://rungameid/{(4294967295 << 32) + 33554432}"], "4294967295"),
    ],
)
def test_a_game_is_asked_for_on_the_command_line(staged: Staged, words: list[str], app: str) -> None:
    ended = staged.run(STEAM, *words, **QUICK)
    assert ended.returncode == 0
    assert f"stand-in reaper: this is an open stand-in; SteamLaunch AppId={app}\n".encode() in ended.stderr
    assert f"stand-in game: this is an open stand-in; AppId {app}\n".encode() in ended.stderr


@pytest.mark.parametrize("text", ["", "0", "0480", "4 8", "x", "-1", "18446744073709551616", "9" * 5000, "٤٨٠"])
def test_what_is_no_games_id_starts_nothing(staged: Staged, text: str) -> None:
    ended = staged.run(STEAM, "-applaunch", text)
    assert ended.returncode == 0
    assert b"not a game's id" in ended.stderr
    assert b"stand-in reaper" not in ended.stderr


@pytest.mark.parametrize("status", [0, 3, 42, 255])
def test_it_ends_with_a_scripted_status(staged: Staged, status: int) -> None:
    assert staged.run(STEAM, **{SCRIPT: f"status={status}"}).returncode == status


def test_it_ends_by_a_scripted_signal_through_the_inner_program(staged: Staged) -> None:
    ended = staged.run(INNER, "steam", "--", staged.path(STEAM), **{SCRIPT: "signal=SEGV"})
    assert ended.returncode == -signal.SIGSEGV
    staged.wait_until_gone()


def test_an_update_restarts_it_without_its_urls(staged: Staged) -> None:
    argv = ["steam", "--url", "steam://rungameid/730", "--", staged.path(STEAM)]
    ended = staged.run(INNER, *argv, **{SCRIPT: "updates=2 status=7"})
    assert ended.returncode == 7
    assert ended.stderr.count(b"ends as after an update") == 2
    assert ended.stderr.count(b"asked for game 730") == 1


def test_updates_for_ever_end_with_42(staged: Staged) -> None:
    ended = staged.run(INNER, "steam", "--", staged.path(STEAM), **{SCRIPT: "updates=100"})
    assert ended.returncode == 42
    assert ended.stderr.count(b"ends as after an update") == 4


def test_a_second_one_ends_the_first_and_its_game(staged: Staged) -> None:
    inner = staged.start(INNER, "steam", "--", staged.path(STEAM), **{SCRIPT: "game=480 stay", GAME_SCRIPT: "stay"})
    staged.wait_for_output("stand-in game: ")
    assert staged.run(STEAM, "-shutdown").returncode == 0
    assert inner.wait(30) == 0
    assert "a game ended with 143" in staged.output()
    staged.wait_until_gone("game")
    staged.wait_until_gone("web-helper")


def test_a_game_that_ignores_its_end_does_not_keep_the_client(staged: Staged) -> None:
    steam = staged.start(STEAM, **{SCRIPT: "game=480 stay", GAME_SCRIPT: "ignore=TERM stay"})
    staged.wait_for_output("stand-in game: ")
    staged.run(STEAM, "-shutdown")
    assert steam.wait(30) == 0
    assert len(staged.alive("game")) == 1


def test_a_second_one_starts_a_game_in_the_first(staged: Staged) -> None:
    steam = staged.start(STEAM, **{SCRIPT: "stay"}, **QUICK)
    staged.wait_for_output("have done their bursts")
    assert b"given to the running client" in staged.run(STEAM, "steam://rungameid/730").stderr
    staged.wait_for_output("a game ended with 0")
    assert "SteamLaunch AppId=730" in staged.output()
    assert steam.poll() is None
    assert staged.run(STEAM, "-shutdown").returncode == 0
    assert steam.wait(30) == 0


def test_a_request_to_end_before_the_helpers_have_settled_is_obeyed(staged: Staged) -> None:
    steam = staged.start(STEAM, **{SCRIPT: "stay"})
    staged.wait_for_output("open stand-in")
    assert staged.run(STEAM, "-shutdown").returncode == 0
    assert steam.wait(30) == 0


def test_it_can_ignore_the_request_to_end_and_the_signal(staged: Staged) -> None:
    steam = staged.start(STEAM, **{SCRIPT: "ignore=shutdown,TERM stay"})
    staged.wait_for_output("have done their bursts")
    assert staged.run(STEAM, "-shutdown").returncode == 0
    staged.wait_for_output("ignores the request to end")
    steam.terminate()
    assert staged.run(STEAM, "-shutdown").returncode == 0
    staged.wait_for_output("ignores the request to end", times=2)
    steam.kill()
    assert steam.wait(30) == -signal.SIGKILL
    staged.wait_until_gone()


def test_a_request_to_end_without_a_client_starts_none(staged: Staged) -> None:
    ended = staged.run(STEAM, "-shutdown")
    assert ended.returncode == 0
    assert ended.stderr == b"stand-in steam: no client is running\n"


def test_what_a_killed_client_left_in_the_folder_does_not_stop_the_next(staged: Staged) -> None:
    steam = staged.start(STEAM, **{SCRIPT: "stay"})
    staged.wait_for_output("have done their bursts")
    steam.kill()
    steam.wait(30)
    assert staged.run(STEAM, **{SCRIPT: "status=4"}).returncode == 4


def test_it_runs_on_for_the_scripted_time_and_waits_for_its_game(staged: Staged) -> None:
    ended = staged.run(STEAM, **{SCRIPT: "game=480 seconds=0.05", GAME_SCRIPT: "seconds=0.2 status=9"})
    assert ended.returncode == 0
    assert b"a game ended with 9" in ended.stderr


def test_helpers_that_are_killed_do_not_hang_it(staged: Staged) -> None:
    steam = staged.start(STEAM, **{SCRIPT: "status=6 calls=100000000"})
    staged.wait_for_output("open stand-in")
    while steam.poll() is None:
        for pid in staged.alive("web-helper"):
            with contextlib.suppress(ProcessLookupError):  # it may have ended with its browser
                os.kill(pid, signal.SIGKILL)
    assert steam.returncode == 6


@pytest.mark.parametrize("word", ["sleep=1", "game=x", "signal=NONE", "ignore=NONE", "updates"])
def test_a_script_that_means_nothing_is_refused_in_one_line(staged: Staged, word: str) -> None:
    ended = staged.run(STEAM, **{SCRIPT: word})
    assert ended.returncode == 64
    assert ended.stderr.decode() == f"stand-in steam: {SCRIPT}: cannot use {word}\n"


@pytest.mark.parametrize("words", [["--type=gpu"], ["--renderers=many"], ["--calls=-1"], ["-x"]])
def test_a_helper_refuses_unknown_options(staged: Staged, words: list[str]) -> None:
    ended = staged.run(HELPER, *words)
    assert ended.returncode == 64
    assert ended.stderr.count(b"\n") == 1


def test_a_helper_tree_tells_of_each_burst_and_ends_with_its_input(staged: Staged) -> None:
    ended = staged.run(HELPER, "--type=browser", "--renderers=2", "--calls=10")
    assert ended.returncode == 0
    assert ended.stdout == b"..."
