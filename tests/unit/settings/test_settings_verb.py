# SPDX-License-Identifier: GPL-3.0-or-later
"""`droiddeck-session settings` as a user types it."""

from __future__ import annotations

import json
import os
import tomllib
from typing import TYPE_CHECKING

import pytest

from droiddeck_session.settings import KEYS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import CommandLine


def write_user_file(cli: CommandLine, text: str) -> Path:
    path = cli.folders["config"] / "droiddeck-session" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_show_prints_every_key_once_with_its_origin(bare_cli: CommandLine) -> None:
    path = write_user_file(bare_cli, '[guest]\nname = "/a b#"\n[environment]\nA = "1"\n')
    done = bare_cli("settings", "show", env={"DROIDDECK_DISPLAY_HDR": "yes"})
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    assert [line.partition(" = ")[0] for line in lines] == [*KEYS, "environment.A"]
    assert f'guest.name = "/a b#"  # {path}' in lines
    assert "display.hdr = true  # environment DROIDDECK_DISPLAY_HDR" in lines
    assert f'environment.A = "1"  # {path}' in lines
    assert 'guest.hostname = ""  # vendor config/config.toml' in lines


def test_what_show_prints_is_toml(bare_cli: CommandLine) -> None:
    tables = tomllib.loads(bare_cli("settings", "show").stdout.decode())
    assert {f"{section}.{key}" for section, table in tables.items() for key in table} == set(KEYS)


def test_show_as_json_is_one_object(bare_cli: CommandLine) -> None:
    done = bare_cli("settings", "show", "--json", env={"DROIDDECK_GUEST_NAME": os.fsdecode(b"/\xff")})
    document = json.loads(done.stdout)
    assert (document["schema"], document["ok"]) == (1, True)
    assert document["settings"]["guest.name"] == {
        "value": os.fsdecode(b"/\xff"), "origin": "environment DROIDDECK_GUEST_NAME",
    }  # fmt: skip
    assert document["settings"]["guest.hostname"]["value"] is None


def test_explain_tells_every_layer_that_sets_the_key_and_the_winner_last(bare_cli: CommandLine) -> None:
    path = write_user_file(bare_cli, "\n[display]\nwidth = 800\n")
    env = {"DROIDDECK_DISPLAY_WIDTH": "640"}
    document = json.loads(bare_cli("settings", "explain", "display.width", "--json", env=env).stdout)
    vendor, *others = document.pop("set_by")
    assert vendor["value"] == 1280
    assert vendor["origin"].startswith("vendor config/config.toml:")
    assert others == [
        {"origin": f"{path}:3", "value": 800},
        {"origin": "environment DROIDDECK_DISPLAY_WIDTH", "value": 640},
    ]
    assert document == {
        "schema": 1, "ok": True, "key": "display.width", "description": "width in pixels",
        "values": "whole number from 1 to 16384", "default": 1280, "value": 640,
        "origin": "environment DROIDDECK_DISPLAY_WIDTH", "variable": "DROIDDECK_DISPLAY_WIDTH", "flag": "--width",
    }  # fmt: skip
    text = bare_cli("settings", "explain", "display.width", env=env).stdout.decode()
    assert text.splitlines()[0] == "display.width: width in pixels"
    assert text.splitlines()[-1] == "    environment DROIDDECK_DISPLAY_WIDTH: 640"
    for word in ("1280", "640", "--width", "DROIDDECK_DISPLAY_WIDTH", "from 1 to 16384"):
        assert word in text


def test_explain_knows_variables_of_the_guest(bare_cli: CommandLine) -> None:
    unset = json.loads(bare_cli("settings", "explain", "environment.A", "--json").stdout)
    assert (unset["value"], unset["set_by"], unset["variable"]) == (None, [], "DROIDDECK_ENVIRONMENT_A")
    env = {"DROIDDECK_ENVIRONMENT_A": "1"}
    assert json.loads(bare_cli("settings", "explain", "environment.A", "--json", env=env).stdout)["value"] == "1"


def test_explain_helps_with_a_key_whose_value_is_wrong(bare_cli: CommandLine) -> None:
    path = write_user_file(bare_cli, "display.width = 0\n")
    done = bare_cli("settings", "explain", "display.width")
    assert done.returncode == 0
    assert b"from 1 to 16384" in done.stdout
    assert f"not counted: {path}:1: display.width" in done.stderr.decode()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_explain_tells_all_it_can_where_a_file_is_none(bare_cli: CommandLine, make: Callable[[Path], None]) -> None:
    path = write_user_file(bare_cli, "")
    path.unlink()
    make(path)
    done = bare_cli("settings", "explain", "display.width", env={"DROIDDECK_DISPLAY_WIDTH": "640"})
    assert done.returncode == 0
    assert done.stdout.decode().splitlines()[-1] == "    environment DROIDDECK_DISPLAY_WIDTH: 640"
    assert f"not counted: {path}: cannot be read: not a regular file" in done.stderr.decode()


@pytest.mark.parametrize("key", ["guest.nmae", "guest", "environment", "", "a.b.c"])
def test_explain_refuses_a_key_that_there_is_not(bare_cli: CommandLine, key: str) -> None:
    done = bare_cli("settings", "explain", key)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"unknown key" in done.stderr
    assert b"did you mean guest.name?" in done.stderr or not key.startswith("guest")


def test_validate_tells_each_fault_of_all_layers_in_one_line(bare_cli: CommandLine) -> None:
    path = write_user_file(bare_cli, "x = 1\n[display]\nwidth = 0\n")
    done = bare_cli("settings", "validate", env={"DROIDDECK_STEAM_DECK": "maybe"})
    assert done.returncode == 1
    assert done.stdout.decode().splitlines() == [
        f"{path}:1: x: unknown key",
        f"{path}:3: display.width: must be at least 1, not 0",
        "environment DROIDDECK_STEAM_DECK: steam.deck: must be true or false",
    ]


def test_validate_checks_the_files_it_is_given_and_no_layer(bare_cli: CommandLine, tmp_path: Path) -> None:
    write_user_file(bare_cli, "x = 1\n")
    good, bad, pipe = tmp_path / "good.toml", tmp_path / "b\nd.toml", tmp_path / "pipe"
    good.write_text("[guest]\r\nname = 'a'\r\n")
    bad.write_text("[guest]\nname = 1\n")
    os.mkfifo(pipe)
    assert bare_cli("settings", "validate", str(good)).returncode == 0
    done = bare_cli("settings", "validate", str(good), str(bad), str(pipe), str(tmp_path / "none"))
    assert done.returncode == 1
    assert done.stdout.decode().splitlines() == [
        f"{tmp_path}/b\\nd.toml:2: guest.name: must be a text in quotes",
        f"{pipe}: cannot be read: not a regular file",
        f"{tmp_path}/none: cannot be read: No such file or directory",
    ]


def test_validate_as_json_is_one_object(bare_cli: CommandLine) -> None:
    assert json.loads(bare_cli("settings", "validate", "--json").stdout) == {"schema": 1, "ok": True, "faults": []}
    write_user_file(bare_cli, "x = 1\n")
    done = bare_cli("settings", "validate", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"], document["error"]["code"]) == (1, False, "UNKNOWN_KEY")
    assert [fault["code"] for fault in document["faults"]] == ["UNKNOWN_KEY"]


def test_a_wrong_file_stops_show_with_one_line_and_a_hint(bare_cli: CommandLine) -> None:
    path = write_user_file(bare_cli, "[display]\nhdr = 'x'\n")
    done = bare_cli("settings", "show")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().splitlines() == [
        f"droiddeck-session: {path}:2: display.hdr: must be true or false [BAD_VALUE]",
        "  hint: droiddeck-session settings explain display.hdr",
    ]
