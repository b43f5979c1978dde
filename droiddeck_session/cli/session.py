# SPDX-License-Identifier: GPL-3.0-or-later
"""The foreground verbs: `run`, `steam`, `desktop`. They end as the program did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from droiddeck_session.cli.client_half import client_half
from droiddeck_session.cli.importing import importing
from droiddeck_session.cli.output import environment, note
from droiddeck_session.cli.setting_flags import flag_options, given_flags
from droiddeck_session.errors import UsageError
from droiddeck_session.interruption import tidy_up_first
from droiddeck_session.plan.request import from_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from droiddeck_session.plan.model import Kind
    from droiddeck_session.plan.request import Request

# What every session can be told; the output's and the client's settings matter to some kinds only.
COMMON_SETTINGS = (
    "guest.name", "guest.hostname", "guest.identity", "backend.name", "fast_path.enabled",
    "session.grace", "session.linger",
)  # fmt: skip
DISPLAY_SETTINGS = ("display.width", "display.height", "display.refresh", "display.fps", "display.hdr")
STEAM_SETTINGS = (
    "display.stretch_16x9", "display.realtime",
    "steam.ui", "steam.deck", "steam.mangoapp", "steam.language", "steam.channel", "steam.xalia", "sync.backend",
)  # fmt: skip
SETTINGS_OF = {
    "run": COMMON_SETTINGS,
    "desktop": (*COMMON_SETTINGS, *DISPLAY_SETTINGS),
    "steam": (*COMMON_SETTINGS, *DISPLAY_SETTINGS, *STEAM_SETTINGS),
}


def session_options(kind: Kind) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator with the options that a verb starting a session of this kind has in common with `plan`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = (
            click.option(
                "--bind", "binds", multiple=True, metavar="HOST[:GUEST]", help="Show a host path in the guest."
            ),
            click.option("--ro-bind", "ro_binds", multiple=True, metavar="HOST[:GUEST]", help="The same, read-only."),
            click.option(
                "--env", "variables", multiple=True, metavar="NAME=VALUE", help="Set a variable in the guest."
            ),
            click.option("--cwd", metavar="DIR", help="Working directory, a guest path."),
        )
        for option in reversed(own):
            command = option(command)
        return flag_options(SETTINGS_OF[kind])(command)

    return decorate


def request_of(kind: Kind, options: dict[str, Any]) -> Request:
    """Return the request that a verb's options and arguments make."""
    return from_words(
        kind,
        argv=options.get("argv") or (),
        url=options.get("url"),
        binds=options["binds"],
        ro_binds=options["ro_binds"],
        variables=options["variables"],
        cwd=options["cwd"],
    )


def _launch(kind: Kind, options: dict[str, Any]) -> int:
    if (status := _through_daemon(kind, options)) is not None:
        return status
    with importing():
        from droiddeck_session.session.launch import launch  # noqa: PLC0415 - --help shall not pay for it

    tidy_up_first()
    return launch(request_of(kind, options), given_flags(options), environ=environment(), tell=note)


def _through_daemon(kind: Kind, options: dict[str, Any]) -> int | None:
    """Let a daemon that is there run the session, and return its status; None where it is ours to run."""
    from droiddeck_session.daemon import handover, place  # noqa: PLC0415 - as above

    if not options["daemon"] or not place.socket_path(environment()).exists():
        return None
    request = {"kind": kind, "flags": given_flags(options), **client_half(options)}
    return handover.run(environment(), request, note)


def program_of(options: dict[str, Any]) -> None:
    """Refuse a `run` without a program.

    Raises:
        UsageError: there is none.
    """
    if not options["argv"]:
        raise UsageError(
            code="NO_PROGRAM",
            message="run: no program given",
            hint="droiddeck-session run [OPTIONS] -- PROGRAM [ARGS...]",
        )


_DAEMON = click.option(
    "--daemon/--no-daemon", default=True, help="Let a running daemon run it where there is no terminal."
)


@click.command(context_settings={"allow_interspersed_args": False})
@session_options("run")
@_DAEMON
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGS]...")
def run(**options: Any) -> int:
    """Run PROGRAM in the guest with this terminal as its own, and end as it ends."""
    program_of(options)
    return _launch("run", options)


@click.command()
@session_options("steam")
@_DAEMON
@click.argument("url", required=False, metavar="[steam://URL]")
def steam(**options: Any) -> int:
    """Start the Steam client in the guest and end as it ends.

    Where the guest has no client, an open stand-in takes its place and says so.
    """
    return _launch("steam", options)


@click.command()
@session_options("desktop")
@_DAEMON
def desktop(**options: Any) -> int:
    """Start the guest's desktop and end as it ends."""
    return _launch("desktop", options)
