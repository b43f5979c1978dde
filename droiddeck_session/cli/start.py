# SPDX-License-Identifier: GPL-3.0-or-later
"""`droiddeck-session start run|steam|desktop`: a session that the daemon runs, without this terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from droiddeck_session.cli.client_half import client_half
from droiddeck_session.cli.output import answer, environment, json_option, note
from droiddeck_session.cli.session import program_of, session_options
from droiddeck_session.cli.setting_flags import given_flags

if TYPE_CHECKING:
    from collections.abc import Callable

    from droiddeck_session.plan.model import Kind


def _start_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option("--wait", "wait_ready", is_flag=True, help="Return when the session is ready."),
        click.option("--reuse", is_flag=True, help="Keep a session of this kind that runs in this guest."),
        click.option("--timeout", type=click.FloatRange(0, 86400), default=90, show_default=True, help="For --wait."),
        json_option("The answer as one JSON object."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _start(kind: Kind, options: dict[str, Any]) -> None:
    from droiddeck_session.daemon.client import call  # noqa: PLC0415 - --help shall not pay for it

    own = environment()
    answered = call(own, "start", kind=kind, flags=given_flags(options), reuse=options["reuse"], **client_half(options))
    for line in answered.pop("told", []):
        note(line)
    if options["wait_ready"]:
        waited = call(own, "wait", **{"for": "ready"}, session=answered["session"], timeout=options["timeout"])
        answered = {**answered, **waited}
    if options["as_json"]:
        answer(answered)
    else:
        click.echo(f"{answered['session']}  {answered['state']}")


@click.group()
def start() -> None:
    """Start a session that the daemon runs; `stop` ends it."""


@start.command(context_settings={"allow_interspersed_args": False})
@session_options("run")
@_start_options
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGS]...")
def run(**options: Any) -> None:
    """Run PROGRAM in the guest; what it prints goes to the session's output.log."""
    program_of(options)
    _start("run", options)


@start.command()
@session_options("steam")
@_start_options
@click.argument("url", required=False, metavar="[steam://URL]")
def steam(**options: Any) -> None:
    """Start the Steam client in the guest."""
    _start("steam", options)


@start.command()
@session_options("desktop")
@_start_options
def desktop(**options: Any) -> None:
    """Start the guest's desktop."""
    _start("desktop", options)
