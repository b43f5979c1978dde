# SPDX-License-Identifier: GPL-3.0-or-later
"""droiddeck-game-env with real programs in Proton's place: everything goes through unchanged."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from unit.programs.conftest import Staged

GAME_ENV = "droiddeck-game-env"


def executable(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_arguments_are_handed_on_exactly(staged: Staged) -> None:
    odd = [b"", b" a  b ", b"\xff\x80", b"new\nline", b"--", b"'\"\\$x", b"%command%"]
    ended = staged.run(GAME_ENV, "/usr/bin/printf", "%s\\0", *odd)
    assert ended.stdout == b"".join(word + b"\0" for word in odd)


@pytest.mark.parametrize("locale", [{}, {"LANG": "C"}, {"LC_CTYPE": "C"}, {"LANG": "xx_XX"}])
def test_the_environment_is_handed_on_exactly(staged: Staged, locale: dict[str, str]) -> None:
    odd = {"EMPTY": "", "NEWLINE": "a\nb", "BYTES": "\udcff\udc80 = ", "LD_LIBRARY_PATH": "/no where:"}
    ended = staged.run(GAME_ENV, "/usr/bin/env", "-0", **locale, **odd)
    got = dict(os.fsdecode(entry).split("=", 1) for entry in ended.stdout.split(b"\0") if entry)
    assert got == staged.environment | locale | odd


def test_proton_takes_the_process_over(staged: Staged) -> None:
    with subprocess.Popen(
        [staged.path(GAME_ENV), "/bin/sh", "-c", "echo $$"], env=staged.environment, stdout=subprocess.PIPE
    ) as started:
        assert started.stdout is not None
        assert int(started.stdout.read()) == started.pid


def test_proton_starts_with_the_callers_signal_dispositions(staged: Staged) -> None:
    look = ["/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    expected = subprocess.run(look, env=staged.environment, capture_output=True, check=True).stdout
    assert staged.run(GAME_ENV, *look).stdout == expected


@pytest.mark.parametrize("status", [0, 7, 42, 255])
def test_the_status_is_protons(staged: Staged, status: int) -> None:
    assert staged.run(GAME_ENV, "/bin/sh", "-c", f"exit {status}").returncode == status


def test_a_signal_is_protons(staged: Staged) -> None:
    assert staged.run(GAME_ENV, "/bin/sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM


@pytest.mark.parametrize("name", ["none", "plain/below"])
def test_a_missing_proton_is_127_with_one_line(staged: Staged, tmp_path: Path, name: str) -> None:
    (tmp_path / "plain").touch()
    ended = staged.run(GAME_ENV, str(tmp_path / name), "run")
    assert ended.returncode == 127
    assert ended.stderr.startswith(f"droiddeck-game-env: cannot run {tmp_path / name}: ".encode())
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize("mode", [0o644, 0o755])
def test_a_proton_that_cannot_run_is_126_with_one_line(staged: Staged, tmp_path: Path, mode: int) -> None:
    proton = Path(executable(tmp_path / "proton", "neither script nor program"))
    proton.chmod(mode)
    ended = staged.run(GAME_ENV, str(proton), "run")
    assert ended.returncode == 126
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize("words", [[], ["/bin/true"]])
def test_bad_usage_is_125(staged: Staged, words: list[str]) -> None:
    ended = staged.run(GAME_ENV, *words)
    assert ended.returncode == 125
    assert ended.stderr.startswith(b"droiddeck-game-env: usage: ")
