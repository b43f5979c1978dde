# SPDX-License-Identifier: GPL-3.0-or-later
"""The verbs that drive the daemon: each asks one thing, and tells the answer as lines or as one JSON object."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from droiddeck_session.cli.output import answer, environment, json_option, note
from droiddeck_session.errors import UsageError
from droiddeck_session.printable import exact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ID = click.argument("session", metavar="[ID]", default="")
_JSON = json_option("The answer as one JSON object.")


def _timeout(seconds: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--timeout", type=click.FloatRange(0, 86400), default=seconds, show_default=True, help="Seconds to wait."
    )


def _ask(verb: str, **fields: Any) -> dict[str, Any]:
    from droiddeck_session.daemon.client import call  # noqa: PLC0415 - --help shall not pay for it

    return call(environment(), verb, **fields)


def _show(answered: Mapping[str, Any], *, as_json: bool) -> None:
    """Tell the answer of a verb that has changed a session."""
    if as_json:
        answer(answered)
    else:
        click.echo(f"{answered['session']}  {answered['state']}")


def _changes(verb: str, seconds: float, text: str) -> click.Command:
    """Return a verb that asks for a change of a session and waits until it has come."""

    @click.command(name=verb, help=text)
    @_ID
    @_timeout(seconds)
    @_JSON
    def command(session: str, timeout: float, *, as_json: bool) -> None:
        _show(_ask(verb, session=session, timeout=timeout), as_json=as_json)

    return command


stop = _changes(
    "stop", 90, "End a session: ask it, then after the grace time end it; wait until nothing of it is left."
)
kill = _changes("kill", 30, "End a session at once.")
suspend = _changes("suspend", 30, "Stop all processes of a session until it is resumed.")
resume = _changes("resume", 30, "Let a suspended session go on.")


@click.command()
@click.argument("state", type=click.Choice(["ready", "idle", "failed"]))
@_ID
@_timeout(90)
@_JSON
def wait(state: str, session: str, timeout: float, *, as_json: bool) -> None:
    """Wait until a session is ready, has ended (idle), or has failed."""
    _show(_ask("wait", **{"for": state}, session=session, timeout=timeout), as_json=as_json)


@click.command()
@_ID
@_JSON
def status(session: str, *, as_json: bool) -> None:
    """List the daemon's sessions: those that run, and the last ones that ended."""
    answered = _ask("status", session=session)
    if as_json:
        answer(answered)
        return
    for one in answered["sessions"]:
        failure = one["failure"]
        why = f"  {failure['code']}: {exact(failure['message'])}" if failure else ""
        click.echo(f"{one['id'] or '-':32}  {one['state']:9}  {one['kind']:7}  {exact(one['guest']) or '-'}{why}")


@click.command()
@_ID
@_JSON
def ps(session: str, *, as_json: bool) -> None:
    """List the processes of a session."""
    answered = _ask("ps", session=session)
    if as_json:
        answer(answered)
        return
    click.echo(f"{'PID':>8} {'PARENT':>8} S {'CPU':>8} {'MEMORY':>10}  NAME")
    for one in answered["processes"]:
        cpu = "-" if one["cpu_seconds"] is None else f"{one['cpu_seconds']:.2f}"
        memory = "-" if one["resident_bytes"] is None else f"{one['resident_bytes'] // 1024} K"
        click.echo(f"{one['pid']:8} {one['parent']:8} {one['state']} {cpu:>8} {memory:>10}  {exact(one['name'])}")


@click.command()
@_ID
@_JSON
def stats(session: str, *, as_json: bool) -> None:
    """Tell what a session uses: time, memory, reads and writes, threads and context switches."""
    answered = _ask("stats", session=session)
    if as_json:
        answer(answered)
        return
    for name, value in answered["tree"].items():
        click.echo(f"{name:15} {value}")


@click.command()
@_ID
@click.option("-f", "--follow", is_flag=True, help="Go on with each event until the session is over.")
def events(session: str, *, follow: bool) -> None:
    """Print a session's events, one JSON object a line."""
    from droiddeck_session.daemon.client import Client  # noqa: PLC0415 - --help shall not pay for it

    with Client(environment()) as client:
        client.request("events", session=session, follow=follow)
        for line in client.lines():
            if "ok" not in line:
                click.echo(json.dumps(line))


@click.command()
@click.argument("app", metavar="APPID")
@_ID
@_timeout(180)
@_JSON
def launch(app: str, session: str, timeout: float, *, as_json: bool) -> None:
    """Let the Steam client of a session start a game, once the session is ready."""
    _show(_ask("launch", app=app, session=session, timeout=timeout), as_json=as_json)


@click.command()
@click.argument("app", metavar="APPID")
@_ID
@_JSON
def quit(app: str, session: str, *, as_json: bool) -> None:  # noqa: A001 - the verb's name
    """End the processes of a game: TERM, and KILL after 5 seconds."""
    answered = _ask("quit", app=app, session=session)
    if as_json:
        answer(answered)
    else:
        click.echo(f"{answered['session']}  {answered['processes']} processes ended")


@click.command(name="guest-exec", context_settings={"allow_interspersed_args": False})
@click.option("--session", default="", metavar="ID", help="The session, where several run.")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGS]...")
def guest_exec(session: str, argv: tuple[str, ...]) -> int:
    """Run PROGRAM in the guest of a session that runs, and end as it ends."""
    if not argv:
        raise UsageError(
            code="NO_PROGRAM",
            message="guest-exec: no program given",
            hint="droiddeck-session guest-exec [--session ID] -- PROGRAM [ARGS...]",
        )
    return _execute(session, argv)


@click.command()
@_ID
def attach(session: str) -> int:
    """Open a shell in the guest of a session that runs, and end as it ends."""
    return _execute(session, ("/bin/sh", "-i"))


def _execute(session: str, argv: tuple[str, ...]) -> int:
    from droiddeck_session.daemon.client import Client  # noqa: PLC0415 - --help shall not pay for it
    from droiddeck_session.processes import hold_closed_descriptors  # noqa: PLC0415 - as above

    hold_closed_descriptors()
    with Client(environment()) as client:
        client.request("execute", (0, 1, 2), session=session, argv=list(argv))
        status: int = client.answer()["status"]
    return status


# What a person follows with the eye needs no more.
_LOOK: Final = 0.2


@click.command()
@click.argument("session", metavar="[ID|latest]", default="latest")
@click.argument("destination", required=False, metavar="[DEST]", type=click.Path())
@click.option("-f", "--follow", is_flag=True, help="Go on with what is added until the session is over.")
def logs(session: str, destination: str | None, *, follow: bool) -> None:
    """Print what a session printed, or copy its folder to DEST. It needs no daemon."""
    from droiddeck_session.daemon import artifacts  # noqa: PLC0415 - --help shall not pay for it
    from droiddeck_session.paths import directories  # noqa: PLC0415 - as above

    folder = artifacts.find(directories(environment()), session)
    if destination is not None:
        if follow:
            raise UsageError(code="TWO_FORMS", message="logs: --follow and DEST exclude each other", hint="give one")
        copied = artifacts.copy(folder, Path(destination))
        note(f"{folder.name}: {copied} files copied to {destination}")
        return
    if sys.stdout is None:
        return
    out = sys.stdout.buffer
    for piece in artifacts.output(folder, follow=follow, pause=_LOOK):
        out.write(piece)
        out.flush()
