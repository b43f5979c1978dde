# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-ins between client and game: reaper and proton."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from unit.programs.conftest import Staged

REAPER, PROTON = "stand-in/reaper", "stand-in/proton"
LAUNCH = ("SteamLaunch", "AppId=480", "--")


def test_a_running_game_is_found_by_its_reaper(staged: Staged) -> None:
    reaper = staged.start(REAPER, *LAUNCH, "/bin/sh", "-c", "echo up; exec sleep 600")
    staged.wait_for_output("up", "stdout")
    assert Path(f"/proc/{reaper.pid}/comm").read_text() == "reaper\n"
    words = Path(f"/proc/{reaper.pid}/cmdline").read_bytes().split(b"\0")[:-1]
    assert words[words.index(b"SteamLaunch") - 1] == os.fsencode(staged.path(REAPER))
    assert words[-6:] == [*(word.encode() for word in LAUNCH), b"/bin/sh", b"-c", b"echo up; exec sleep 600"]
    reaper.terminate()
    assert reaper.wait(30) == -signal.SIGTERM
    assert not staged.alive()


@pytest.mark.parametrize("status", [0, 7, 42, 255])
def test_a_reaper_ends_with_the_games_status(staged: Staged, status: int) -> None:
    assert staged.run(REAPER, *LAUNCH, "/bin/sh", "-c", f"exit {status}").returncode == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGABRT])
def test_a_reaper_ends_by_the_games_signal(staged: Staged, number: int) -> None:
    assert staged.run(REAPER, *LAUNCH, "/bin/sh", "-c", f"kill -{number:d} $$").returncode == -number


def test_a_reaper_waits_for_what_the_game_leaves_behind(staged: Staged) -> None:
    leave = "(setsid sh -c 'echo left; exec sleep 600' &); exit 7"
    reaper = staged.start(REAPER, *LAUNCH, "/bin/sh", "-c", leave)
    staged.wait_for_output("left", "stdout")
    staged.wait_until_gone("sh")
    (left,) = staged.wait_for_alive("sleep", 1)
    parent = Path(f"/proc/{left}/stat").read_text().rpartition(")")[2].split()[1]
    assert int(parent) == reaper.pid
    assert reaper.poll() is None
    os.kill(left, signal.SIGKILL)
    assert reaper.wait(30) == 7


def test_a_reaper_that_only_waits_for_leftovers_can_be_ended(staged: Staged) -> None:
    reaper = staged.start(REAPER, *LAUNCH, "/bin/sh", "-c", "(setsid sleep 600 &); exit 7")
    staged.wait_for_alive("sleep", 1)  # before it, no sh may only mean that none has started yet
    staged.wait_until_gone("sh")
    reaper.terminate()
    assert reaper.wait(30) in (-signal.SIGTERM, 7)


def test_a_reaper_hands_arguments_on_exactly(staged: Staged) -> None:
    odd = [b"", b"\xff", b"new\nline", b"--", b" "]
    ended = staged.run(REAPER, *LAUNCH, "/usr/bin/printf", "%s\\0", *odd)
    assert ended.stdout == b"".join(word + b"\0" for word in odd)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ([], 125),
        (["SteamLaunch", "AppId=1"], 125),
        ([*LAUNCH], 125),
        ([*LAUNCH, "/none"], 127),
        ([*LAUNCH, "/etc"], 126),
    ],
)
def test_a_reaper_says_what_is_wrong(staged: Staged, words: list[str], status: int) -> None:
    ended = staged.run(REAPER, *words)
    assert ended.returncode == status
    assert ended.stderr.splitlines()[-1].startswith(b"stand-in reaper: ")
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("verb", ["waitforexitandrun", "run", "runinprefix"])
@pytest.mark.parametrize("status", [0, 7])
def test_proton_ends_with_the_games_status(staged: Staged, verb: str, status: int) -> None:
    assert staged.run(PROTON, verb, "/bin/sh", "-c", f"exit {status}").returncode == status


def test_proton_ends_by_the_games_signal(staged: Staged) -> None:
    assert staged.run(PROTON, "run", "/bin/sh", "-c", "kill -KILL $$").returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("words", "status"),
    [([], 64), (["run"], 64), (["walk", "/bin/true"], 64), (["run", "/none"], 127), (["run", "/etc"], 126)],
)
def test_proton_says_what_is_wrong(staged: Staged, words: list[str], status: int) -> None:
    ended = staged.run(PROTON, *words)
    assert ended.returncode == status
    assert ended.stderr.splitlines()[-1].startswith(b"stand-in proton: ")
    assert b"Traceback" not in ended.stderr


def test_a_script_that_means_nothing_ends_proton(staged: Staged) -> None:
    assert staged.run(PROTON, "run", "/bin/true", DROIDDECK_STAND_IN_PROTON="linger=long").returncode == 64


def test_a_wineserver_outlives_the_game_and_holds_no_output(staged: Staged) -> None:
    ended = staged.run(PROTON, "run", "/bin/true", DROIDDECK_STAND_IN_PROTON="linger=600")
    assert ended.returncode == 0
    (wineserver,) = staged.wait_for_alive("wineserver", 1)
    assert os.getsid(wineserver) == wineserver


def test_a_wineserver_goes_when_the_game_is_gone(staged: Staged) -> None:
    assert staged.run(PROTON, "run", "/bin/true", DROIDDECK_STAND_IN_PROTON="linger=0").returncode == 0
    staged.wait_until_gone("wineserver")


def test_a_wineserver_stays_while_a_program_of_the_game_lives(staged: Staged) -> None:
    leave = "(setsid sleep 600 >/dev/null 2>&1 &)"
    staged.run(PROTON, "run", "/bin/sh", "-c", leave, DROIDDECK_STAND_IN_PROTON="linger=0")
    staged.wait_for_alive("wineserver", 1)
    (program,) = staged.wait_for_alive("sleep", 1)
    os.kill(program, signal.SIGKILL)
    staged.wait_until_gone("wineserver")


def test_the_next_game_waits_for_the_prefixs_wineserver_and_others_do_not(staged: Staged) -> None:
    ended = staged.run(PROTON, "run", "/bin/true", SteamAppId="1", DROIDDECK_STAND_IN_PROTON="linger=600")
    assert ended.returncode == 0
    (wineserver,) = staged.wait_for_alive("wineserver", 1)
    quick = {"DROIDDECK_STAND_IN_PROTON": "linger=0"}
    assert staged.run(PROTON, "waitforexitandrun", "/bin/true", SteamAppId="2", **quick).returncode == 0
    waiting = staged.start(PROTON, "waitforexitandrun", "/bin/echo", "runs", SteamAppId="1", **quick)
    staged.wait_for_output("waitforexitandrun for AppId 1")
    assert "runs" not in staged.output("stdout")
    os.kill(wineserver, signal.SIGKILL)
    assert waiting.wait(30) == 0
    assert staged.output("stdout") == "runs\n"


def test_another_program_joins_the_prefixs_wineserver(staged: Staged) -> None:
    script = {"DROIDDECK_STAND_IN_PROTON": "linger=600"}
    assert staged.run(PROTON, "run", "/bin/true", **script).returncode == 0
    servers = staged.wait_for_alive("wineserver", 1)
    assert staged.run(PROTON, "runinprefix", "/bin/sh", "-c", "exit 4", **script).returncode == 4
    assert staged.alive("wineserver") == servers


def test_a_game_starts_with_default_signals(staged: Staged) -> None:
    for name, words in ((PROTON, ("run",)), (REAPER, LAUNCH)):
        ended = staged.run(name, *words, "/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
        # glibc's posix_spawn leaves its own two signals, 32 and 33, ignored; they mean nothing to a program.
        assert [int(mask, 16) & ~0x180000000 for mask in ended.stdout.split()[1::2]] == [0, 0]
