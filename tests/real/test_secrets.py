# SPDX-License-Identifier: GPL-3.0-or-later
"""What a session leaves behind: what its programs did, and nothing that a user told it in confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import CommandLine

pytestmark = pytest.mark.real

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("arguments", "config"),
    [
        (("steam", f"steam://run/480//-password {SECRET}/"), ""),
        (("steam", f"steam://run/480//-password {SECRET}/", "--env", "DROIDDECK_STAND_IN_STEAM=signal=11"), ""),
        (("run", "--env", f"TOKEN={SECRET}", "--", "sh", "-c", f"exit 3 # {SECRET}"), ""),
        (("run", "--env", f"GLIBC_TUNABLES=glibc.malloc.check={SECRET}", "--", "true"), ""),
        (("run", "--", "/no/such/program", SECRET), ""),
        (("desktop",), f'[environment]\nTOKEN = "{SECRET}"\n'),
    ],
    ids=["url", "url of a client that is killed", "argument", "tunable", "no program", "settings"],
)
def test_no_artefact_of_a_session_has_it(cli: CommandLine, arguments: tuple[str, ...], config: str) -> None:
    folder = cli.folders["config"] / "droiddeck-session"
    folder.mkdir()
    (folder / "config.toml").write_text(config)
    cli(*arguments)
    (session,) = cli.sessions()
    files = [path for path in session.rglob("*") if path.is_file()]
    assert {"plan.json", "session.log", "events.jsonl"} <= {path.name for path in files}
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def test_what_the_session_s_programs_did_stays_with_its_record(cli: CommandLine) -> None:
    assert cli("steam").returncode == 0
    (session,) = cli.sessions()
    told = (session / "debug" / "inner.log").read_text().splitlines()
    assert [line.split(maxsplit=3)[3] for line in told] == ["started steam", "ended with status 0"]
    assert not (session / "run").exists()
