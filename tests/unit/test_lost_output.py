# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams that are closed, full or no longer read: never a traceback, and a status that says what happened."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from guest_trees import fill

from droiddeck_session.cli.main import _as_files_error
from droiddeck_session.paths import directories

if TYPE_CHECKING:
    from conftest import CommandLine

SHELL_PLAN = ["plan", "run", "--backend", "direct", "--shell", "true"]
ANSWERING = (["--help"], ["version", "--json"], ["settings", "schema"], SHELL_PLAN)
SPOKEN = (["guest", "list"], ["run", "--backend", "direct", "true"], ["run", "--bogus"])


def ended(cli: CommandLine, arguments: list[str], redirections: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command line with a shell's redirections."""
    # Unbuffered output hides what Python says of a last flush that fails.
    environ = {**cli.environ, "PYTHONUNBUFFERED": ""}
    words = ["bash", "-c", f'exec "$@" {redirections}', "bash", *cli.argv(*arguments)]
    done = subprocess.run(words, env=environ, capture_output=True, stdin=subprocess.DEVNULL, timeout=50, check=False)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    return done


@pytest.mark.parametrize("arguments", ANSWERING, ids=" ".join)
def test_an_answer_that_cannot_be_written_is_an_error(bare_cli: CommandLine, arguments: list[str]) -> None:
    done = ended(bare_cli, arguments, ">/dev/full")
    assert done.returncode == 6
    assert b"No space left on device [IO]" in done.stderr


@pytest.mark.parametrize("arguments", ANSWERING, ids=" ".join)
def test_an_answer_that_nobody_reads_ends_as_sigpipe_does(bare_cli: CommandLine, arguments: list[str]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "wb") as pipe:
        done = subprocess.run(
            bare_cli.argv(*arguments), env={**bare_cli.environ, "PYTHONUNBUFFERED": ""}, stdout=pipe,
            stderr=subprocess.PIPE, check=False, timeout=50,
        )  # fmt: skip
    assert (done.returncode, b"droiddeck-session: " in done.stderr and b"[IO]" in done.stderr) == (141, False)
    assert b"Exception" not in done.stderr


@pytest.mark.parametrize("arguments", [*ANSWERING, *SPOKEN], ids=" ".join)
def test_closed_streams_change_no_status(bare_cli: CommandLine, arguments: list[str]) -> None:
    expected = ended(bare_cli, arguments, "").returncode
    assert [ended(bare_cli, arguments, each).returncode for each in (">&-", "2>&-", "<&- >&- 2>&-")] == [expected] * 3


@pytest.mark.parametrize("arguments", SPOKEN, ids=" ".join)
def test_words_that_cannot_be_said_change_no_status(bare_cli: CommandLine, arguments: list[str]) -> None:
    assert ended(bare_cli, arguments, "2>/dev/full").returncode == ended(bare_cli, arguments, "").returncode


def test_a_file_that_nothing_expected_to_fail_is_named() -> None:
    error = _as_files_error(PermissionError(errno.EACCES, "Permission denied", b"/a\xff"))
    assert (error.exit_status, error.message) == (6, "'/a\\udcff': Permission denied")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["plan", "run", "--guest", "nix", "--json", "true"], "NO_GUEST"),
        (["plan", "run", "--guest", "nix", "true", "--json"], None),
        (["plan", "run", "--bogus", "--json"], "USAGE"),
        (["run", "--guest", "nix", "echo", "--json"], None),
        (["run", "--guest", "nix", "--", "echo", "--json"], None),
        (["run", "--json", "echo"], None),
        (["guest", "show", "nix", "--json"], "NO_GUEST"),
        (["guest", "--json"], None),
    ],
)
def test_only_our_own_option_makes_an_error_json(
    bare_cli: CommandLine, arguments: list[str], code: str | None
) -> None:  # fmt: skip
    done = bare_cli(*arguments)
    assert done.returncode != 0
    assert done.stderr
    assert (json.loads(done.stdout)["error"]["code"] if done.stdout else None) == code


@pytest.mark.parametrize("home", ["rel/ative", ""])
def test_a_home_that_is_no_absolute_path_counts_as_unset(home: str) -> None:
    assert directories({"HOME": home}) == directories({})
    assert directories({"HOME": "/a"}).config == Path("/a/.config/droiddeck-session")


def test_a_rootfs_that_the_caller_may_not_look_into_is_said_so(bare_cli: CommandLine, tmp_path: Path) -> None:
    fill(tmp_path / "tree")
    (tmp_path / "tree").chmod(0)
    as_anybody = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    argv = [*as_anybody, *bare_cli.argv("guest", "show", str(tmp_path / "tree"))]
    done = subprocess.run(argv, env=bare_cli.environ, capture_output=True, check=False, timeout=50)
    assert (done.returncode, b"may not look into" in done.stderr) == (6, True)
    (tmp_path / "tree").chmod(0o755)
