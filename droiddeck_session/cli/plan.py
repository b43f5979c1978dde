# SPDX-License-Identifier: GPL-3.0-or-later
"""`droiddeck-session plan run|steam|desktop`: what the verb would do, in one of four forms, without starting it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from droiddeck_session.cli.output import answer, environment, json_option, note
from droiddeck_session.cli.session import program_of, request_of, session_options
from droiddeck_session.cli.setting_flags import given_flags
from droiddeck_session.errors import UsageError
from droiddeck_session.interruption import tidy_up_first

if TYPE_CHECKING:
    from collections.abc import Callable

    from droiddeck_session.plan.model import Kind
    from droiddeck_session.session.prepare import Prepared


def _output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        json_option("The plan and the host command as one JSON object."),
        click.option("--shell", "as_shell", is_flag=True, help="Stage into a new folder and print one line to paste."),
        click.option(
            "--hostprocess", "as_hostprocess", is_flag=True, help="As --shell, in the form of Android's HostProcess."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _show(kind: Kind, options: dict[str, Any]) -> None:
    from droiddeck_session.session.prepare import prepare  # noqa: PLC0415 - --help shall not pay for it

    tidy_up_first()
    forms = [name for name in ("as_json", "as_shell", "as_hostprocess") if options[name]]
    if len(forms) > 1:
        flags = " and ".join("--" + name.removeprefix("as_") for name in forms)
        raise UsageError(code="TWO_FORMS", message=f"plan: {flags} exclude each other", hint="give one of them")
    prepared = prepare(request_of(kind, options), given_flags(options), environ=environment())
    if options["as_json"]:
        _show_json(prepared)
    elif options["as_shell"] or options["as_hostprocess"]:
        _show_staged(prepared, as_shell=options["as_shell"])
    else:
        from droiddeck_session.plan.render import render  # noqa: PLC0415 - --help shall not pay for it

        click.echo(render(prepared.plan))


def _show_json(prepared: Prepared) -> None:
    command = prepared.backend.command(prepared.plan, prepared.capabilities)
    answer(
        {
            "plan": prepared.plan.model_dump(mode="python", by_alias=True),
            "capabilities": prepared.capabilities.model_dump(mode="json"),
            "command": dataclasses.asdict(command),
        }
    )


def _show_staged(prepared: Prepared, *, as_shell: bool) -> None:
    from droiddeck_session.plan.render import hostprocess  # noqa: PLC0415 - --help shall not pay for it
    from droiddeck_session.processes import pasteable  # noqa: PLC0415 - --help shall not pay for it
    from droiddeck_session.session.launch import staged_command, warnings  # noqa: PLC0415 - --help shall not pay for it

    for line in warnings(prepared):
        note(line)
    if not as_shell:
        # What that form cannot hold is refused before anything is made.
        hostprocess(prepared.backend.command(prepared.plan, prepared.capabilities).argv)
    command, folder = staged_command(prepared)
    text = pasteable(command.argv, command.env, command.cwd) if as_shell else hostprocess(command.argv)
    # The bytes as they are: a path that is not UTF-8 must reach the shell unchanged.
    click.echo(text.encode(errors="surrogateescape"))
    note(f"staged into {folder}, which is yours to remove")


@click.group()
def plan() -> None:
    """Show what a verb would do: every bind and variable with its reason and origin, and the command."""


@plan.command("run", context_settings={"allow_interspersed_args": False})
@_output_options
@session_options("run")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGS]...")
def plan_run(**options: Any) -> None:
    """Show what `run` would do."""
    program_of(options)
    _show("run", options)


@plan.command("steam")
@_output_options
@session_options("steam")
@click.argument("url", required=False, metavar="[steam://URL]")
def plan_steam(**options: Any) -> None:
    """Show what `steam` would do."""
    _show("steam", options)


@plan.command("desktop")
@_output_options
@session_options("desktop")
def plan_desktop(**options: Any) -> None:
    """Show what `desktop` would do."""
    _show("desktop", options)
