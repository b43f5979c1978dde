# SPDX-License-Identifier: GPL-3.0-or-later
"""How verbs speak: results on stdout, everything else on stderr, errors in one line with one hint."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from droiddeck_session.errors import EXIT_OWN_FAILURE
from droiddeck_session.printable import exact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from droiddeck_session.errors import DroiddeckError

JSON_SCHEMA = 1
WRAPPING_VERBS = frozenset({"run", "steam", "desktop", "guest shell"})


def note(text: str) -> None:
    """Print one line for the person at the terminal."""
    click.echo(f"droiddeck-session: {exact(text)}", err=True)


def answer(document: Mapping[str, object]) -> None:
    """Print a verb's answer as one JSON object: `schema` and `ok` first, then the verb's own fields."""
    click.echo(json.dumps({"schema": JSON_SCHEMA, "ok": True, **document}))


def fail(error: DroiddeckError, *, verb: str, as_json: bool) -> NoReturn:
    """Tell an error and end with its status (125 for a wrapping verb)."""
    if as_json:
        body = {"code": error.code, "message": error.message, "hint": error.hint}
        click.echo(json.dumps({"schema": JSON_SCHEMA, "ok": False, "error": body}))
    note(f"{error.message} [{error.code}]")
    if error.hint:
        click.echo(f"  hint: {exact(error.hint)}", err=True)
    sys.exit(EXIT_OWN_FAILURE if verb in WRAPPING_VERBS else error.exit_status)


def environment() -> dict[str, str]:
    """Return the caller's environment; the one place of `cli/` that reads it."""
    return dict(os.environ)
