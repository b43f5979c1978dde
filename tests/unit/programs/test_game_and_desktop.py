# SPDX-License-Identifier: GPL-3.0-or-later
"""The scripted endings of the stand-in game and the stand-in desktop."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from unit.programs.conftest import Staged

GAME, DESKTOP = "stand-in/game", "stand-in/desktop"
SCRIPTS = {GAME: "DROIDDECK_STAND_IN_GAME", DESKTOP: "DROIDDECK_STAND_IN_DESKTOP"}

both = pytest.mark.parametrize("program", [GAME, DESKTOP])


@both
def test_without_a_script_it_says_what_it_is_and_ends_well(staged: Staged, program: str) -> None:
    ended = staged.run(program, SteamAppId="480")
    assert ended.returncode == 0
    assert ended.stdout == b""
    assert b"open stand-in" in ended.stderr.splitlines()[0]


@both
@pytest.mark.parametrize("status", [0, 7, 255])
def test_it_ends_with_a_scripted_status(staged: Staged, program: str, status: int) -> None:
    assert staged.run(program, **{SCRIPTS[program]: f"status={status}"}).returncode == status


@both
@pytest.mark.parametrize(("word", "number"), [("TERM", 15), ("SIGKILL", 9), ("11", 11), ("INT", 2), ("PIPE", 13)])
def test_it_ends_by_a_scripted_signal(staged: Staged, program: str, word: str, number: int) -> None:
    assert staged.run(program, **{SCRIPTS[program]: f"signal={word}"}).returncode == -number


@both
def test_it_stays_until_it_is_ended(staged: Staged, program: str) -> None:
    started = staged.start(program, **{SCRIPTS[program]: "stay"})
    staged.wait_for_output("open stand-in")
    started.terminate()
    assert started.wait(30) == -signal.SIGTERM
    staged.wait_until_gone()


@both
def test_it_ignores_what_it_is_told_to(staged: Staged, program: str) -> None:
    started = staged.start(program, **{SCRIPTS[program]: "ignore=TERM,INT stay"})
    staged.wait_for_output("open stand-in")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        started.send_signal(number)
    assert started.wait(30) == -signal.SIGKILL
    staged.wait_until_gone()


@both
@pytest.mark.parametrize("word", ["sleep=1", "status=seven", "signal=NONE", "signal=999", "seconds"])
def test_a_script_that_means_nothing_is_refused_in_one_line(staged: Staged, program: str, word: str) -> None:
    ended = staged.run(program, **{SCRIPTS[program]: word})
    assert ended.returncode == 64
    assert ended.stderr.decode() == f"stand-in {program[9:]}: {SCRIPTS[program]}: cannot use {word}\n"


def test_a_game_names_its_app_and_looks_through_files(staged: Staged) -> None:
    ended = staged.run(GAME, SteamAppId="730", DROIDDECK_STAND_IN_GAME="seconds=0.05")
    assert b"AppId 730" in ended.stderr
    assert int(ended.stderr.split()[-2]) > 0


def test_a_game_leaves_an_orphan_that_holds_no_output(staged: Staged) -> None:
    assert staged.run(GAME, DROIDDECK_STAND_IN_GAME="orphan=600 status=5").returncode == 5
    (orphan,) = staged.alive()
    assert os.getsid(orphan) != os.getsid(0)


def test_a_game_leaves_a_holder_of_its_output(staged: Staged) -> None:
    with subprocess.Popen(
        [staged.path(GAME)],
        env=staged.environment | {"DROIDDECK_STAND_IN_GAME": "holder=600 status=5"},
        stdout=subprocess.PIPE,
    ) as game:
        assert game.wait(30) == 5
        (holder,) = staged.alive()
        assert game.stdout is not None
        os.set_blocking(game.stdout.fileno(), False)
        assert game.stdout.read() is None  # not at its end
        os.kill(holder, signal.SIGKILL)
        staged.wait_until_gone()
        assert game.stdout.read() == b""


@pytest.mark.parametrize("count", [1, 100_000])
def test_a_game_floods_its_output_to_the_byte(staged: Staged, count: int) -> None:
    assert len(staged.run(GAME, DROIDDECK_STAND_IN_GAME=f"flood={count}").stdout) == count


def test_a_game_shows_arguments_names_and_cwd(staged: Staged) -> None:
    odd = [b"", b"\xff", b"a b\nc"]
    script = "DROIDDECK_STAND_IN_GAME"
    shown = staged.run(GAME, *odd, **{script: "show=arguments"}).stdout
    assert shown == b"".join(word + b"\0" for word in odd)
    names = staged.run(GAME, **{script: "show=names"}, LC_ALL="C.UTF-8").stdout.split(b"\0")[:-1]
    assert {name.decode() for name in names} == {*staged.environment, script, "LC_ALL"}
    assert staged.run(GAME, **{script: "show=cwd"}).stdout == bytes(Path.cwd()) + b"\0"


def test_a_desktops_panel_ends_with_it(staged: Staged) -> None:
    desktop = staged.start(DESKTOP, DROIDDECK_STAND_IN_DESKTOP="stay")
    staged.wait_for_output("the panel is up")
    (panel,) = set(staged.alive()) - {desktop.pid}
    desktop.kill()
    desktop.wait(30)
    staged.wait_until_gone()
    assert panel != desktop.pid
