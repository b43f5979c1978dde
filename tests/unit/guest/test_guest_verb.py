# SPDX-License-Identifier: GPL-3.0-or-later
"""The verb `guest` as people and programs call it: one object on stdout with --json, notes on stderr, statuses."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from guest_trees import fill

if TYPE_CHECKING:
    from conftest import CommandLine


@pytest.fixture
def stocked(bare_cli: CommandLine, tmp_path: Path) -> CommandLine:
    """A command line with one imported guest, `demo`."""
    fill(tmp_path / "tree")
    done = bare_cli("guest", "import", str(tmp_path / "tree"), "demo")
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    return bare_cli


def answer(cli: CommandLine, *arguments: str, status: int = 0) -> dict[str, Any]:
    done = cli("guest", *arguments, "--json")
    assert done.returncode == status, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert (document["schema"], document["ok"]) == (1, status == 0)
    return document


def test_the_guests_are_listed(stocked: CommandLine, tmp_path: Path) -> None:
    (guest,) = answer(stocked, "list")["guests"]
    assert (guest["name"], guest["usable"], guest["source"]) == ("demo", True, str(tmp_path / "tree"))
    head, line = stocked("guest", "list").stdout.decode().splitlines()
    assert head.split() == ["NAME", "ARCH", "CREATED", "FROM"]
    assert line.split()[0] == "demo"


def test_no_guests_is_an_empty_list_and_a_hint(bare_cli: CommandLine) -> None:
    assert answer(bare_cli, "list")["guests"] == []
    done = bare_cli("guest", "list")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"guest create" in done.stderr


def test_a_broken_guest_is_listed_and_shown_as_such(stocked: CommandLine) -> None:
    (guest,) = answer(stocked, "list")["guests"]
    Path(guest["root"], "usr/bin/env").unlink()
    assert "/usr/bin/env is missing" in answer(stocked, "list")["guests"][0]["fault"]
    assert b"cannot be used: /usr/bin/env is missing" in stocked("guest", "list").stdout
    assert answer(stocked, "show", "demo")["guest"]["usable"] is False


def test_a_rootfs_elsewhere_is_shown(bare_cli: CommandLine, tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"odd \n:\xff")
    fill(root)
    shown = answer(bare_cli, "show", str(root))["guest"]
    assert (shown["name"], shown["usable"], shown["packages"]) == (str(root), True, {})
    assert str(tmp_path).encode() in bare_cli("guest", "show", str(root)).stdout


@pytest.mark.parametrize("verb", ["show", "remove"])
def test_an_unknown_guest_is_an_error_object(stocked: CommandLine, verb: str) -> None:
    error = answer(stocked, verb, "dmo", status=6)["error"]
    assert error["code"] == "UNKNOWN_GUEST"
    assert "did you mean 'demo'?" in error["hint"]


def test_remove_without_a_terminal_wants_a_yes(stocked: CommandLine) -> None:
    assert answer(stocked, "remove", "demo", status=2)["error"]["code"] == "NOT_CONFIRMED"
    assert len(answer(stocked, "list")["guests"]) == 1
    assert answer(stocked, "remove", "--yes", "demo")["removed"] == "demo"
    assert answer(stocked, "list")["guests"] == []


@pytest.mark.parametrize(("reply", "status", "left"), [(b"n\n", 2, ["demo"]), (b"y\n", 0, [])])
def test_remove_asks_a_person(stocked: CommandLine, reply: bytes, status: int, left: list[str]) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "wb", buffering=0) as keyboard:
        process = subprocess.Popen(
            stocked.argv("guest", "remove", "demo"), env=stocked.environ,
            stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        os.close(theirs)
        keyboard.write(reply)
        stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (status, b"")
    assert b"Remove guest demo" in stderr
    assert [guest["name"] for guest in answer(stocked, "list")["guests"]] == left


def test_an_import_names_the_guest_after_its_source(bare_cli: CommandLine, tmp_path: Path) -> None:
    fill(tmp_path / "My Debian")
    assert answer(bare_cli, "import", str(tmp_path / "My Debian"))["guest"]["name"] == "my-debian"
    assert answer(bare_cli, "import", str(tmp_path / "My Debian"), status=6)["error"]["code"] == "GUEST_EXISTS"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["create", "A"], "BAD_GUEST_NAME"),
        (["create", "--suite", "no suite"], "BAD_SUITE"),
        (["create", "--include", "vim,-x"], "BAD_PACKAGE"),
        (["remove", "../demo"], "BAD_GUEST_NAME"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(bare_cli: CommandLine, arguments: list[str], code: str) -> None:
    assert answer(bare_cli, *arguments, status=2)["error"]["code"] == code
