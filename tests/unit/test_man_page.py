# SPDX-License-Identifier: GPL-3.0-or-later
"""The man page: well formed, and it names every verb and option that there is and no other."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click

from droiddeck_session import errors
from droiddeck_session.cli.main import droiddeck_session

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "man" / "droiddeck-session.1"
LINES = PAGE.read_text().splitlines()


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield all verbs that can be called, each with its words: `guest create`."""
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                yield from commands(below, (*path, name))
    else:
        yield " ".join(path), command


def options(command: click.Command) -> set[str]:
    """Return the long options of a verb, `--no-x` twins included."""
    return {
        name
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    }


def documented() -> dict[str, set[str]]:
    """Return the options that the page gives for each verb; a heading may name several verbs."""
    found: dict[str, set[str]] = {}
    section = ""
    verbs: list[str] = []
    for line in LINES:
        if line.startswith(".Sh "):
            section, verbs = line.removeprefix(".Sh "), []
        elif section != "VERBS":
            continue
        elif line.startswith(".Ss "):
            verbs = [verb.strip() for verb in line.removeprefix(".Ss ").split(",")]
            for verb in verbs:
                found.setdefault(verb, set())
        elif line.startswith(".It Fl Fl "):
            for verb in verbs:
                found[verb] |= {f"--{name}" for name in re.findall(r"Fl Fl ([a-z0-9-]+)", line)}
    return found


def section(title: str) -> str:
    """Return the source of one section."""
    text = "\n".join(LINES)
    _, _, rest = text.partition(f".Sh {title}\n")
    return rest.partition("\n.Sh ")[0]


def test_every_verb_and_no_other_has_its_place() -> None:
    assert set(documented()) == {path for path, _ in commands(droiddeck_session)}


def test_every_option_and_no_other_is_documented_with_its_verb() -> None:
    assert documented() == {path: options(command) for path, command in commands(droiddeck_session)}


def test_the_page_is_formatted_without_a_warning() -> None:
    done = subprocess.run(
        ["groff", "-mdoc", "-Tutf8", "-ww", "-Kutf8", PAGE], capture_output=True, text=True, timeout=50, check=True
    )
    assert done.stderr == ""
    assert "Linux sessions in a rootfs" in done.stdout


def test_both_tables_of_exit_statuses_are_complete() -> None:
    statuses = set(re.findall(r"^\.It (\S+)", section("EXIT STATUS"), re.MULTILINE))
    ours = {value for name, value in vars(errors).items() if name.startswith("EXIT_") and name != "EXIT_SIGNAL_BASE"}
    assert statuses == {*map(str, ours), "128+n"}


def test_the_page_has_the_sections_that_readers_look_for() -> None:
    headings = [line.removeprefix(".Sh ") for line in LINES if line.startswith(".Sh ")]
    assert headings == [
        *("NAME", "SYNOPSIS", "DESCRIPTION", "VERBS", "BACKENDS", "SIGNALS"),
        *("EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"),
    ]
