# SPDX-License-Identifier: GPL-3.0-or-later
"""How verbs speak: results on stdout, everything else on stderr, errors in one line with one hint.

Standard output that is closed gets nothing, as with click; one that cannot be written is an error. What is said on
standard error is lost where that cannot be written: it never decides how a verb ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import click

from droiddeck_session.errors import EXIT_OWN_FAILURE
from droiddeck_session.printable import exact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from droiddeck_session.errors import DroiddeckError

JSON_SCHEMA = 1
WRAPPING_VERBS = frozenset({"run", "steam", "desktop", "attach", "guest-exec", "guest shell"})


@dataclass
class Form:
    """In which form the verb that is running answers; the root context's object."""

    json: bool = False


def json_option(text: str = "One JSON object.") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a verb the option `--json`, which errors of the verb obey too.

    Args:
        text: for `--help`.
    """

    def keep(context: click.Context, _parameter: click.Parameter, given: bool) -> bool:  # noqa: FBT001 - click's signature
        form = context.find_object(Form)
        if form is not None:
            form.json = given
        return given

    # Eager, so that it is known when another option is refused.
    return click.option("--json", "as_json", is_flag=True, is_eager=True, callback=keep, help=text)


def note(text: str) -> None:
    """Print one line for the person at the terminal."""
    _say(f"droiddeck-session: {exact(text)}")


def answer(document: Mapping[str, object]) -> None:
    """Print a verb's answer as one JSON object: `schema` and `ok` first, then the verb's own fields."""
    click.echo(json.dumps({"schema": JSON_SCHEMA, "ok": True, **document}))


def fail(error: DroiddeckError, *, verb: str, as_json: bool) -> NoReturn:
    """Tell an error and end with its status (125 for a wrapping verb)."""
    if as_json:
        body = {"code": error.code, "message": error.message, "hint": error.hint}
        # It may be standard output itself that failed.
        with contextlib.suppress(OSError):
            click.echo(json.dumps({"schema": JSON_SCHEMA, "ok": False, "error": body}))
    note(f"{error.message} [{error.code}]")
    if error.hint:
        _say(f"  hint: {exact(error.hint)}")
    sys.exit(EXIT_OWN_FAILURE if verb in WRAPPING_VERBS else error.exit_status)


def environment() -> dict[str, str]:
    """Return the caller's environment; the one place of `cli/` that reads it."""
    return dict(os.environ)


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        click.echo(line, err=True)
