# SPDX-License-Identifier: GPL-3.0-or-later
"""The verb `guest`: make, take in, list, show, remove and enter guests."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from droiddeck_session import settings
from droiddeck_session.cli.completion import guest_names
from droiddeck_session.cli.output import answer, environment, json_option, note
from droiddeck_session.errors import UsageError
from droiddeck_session.guest import create as making
from droiddeck_session.guest.import_tree import default_name, import_tree
from droiddeck_session.guest.login import login_shell
from droiddeck_session.guest.store import DEFAULT_NAME, GuestStore
from droiddeck_session.interruption import tidy_up_first
from droiddeck_session.layers import read_layers
from droiddeck_session.paths import directories
from droiddeck_session.plan.request import Request
from droiddeck_session.plan.tables import parse_tables
from droiddeck_session.printable import exact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from droiddeck_session.guest.store import Guest
    from droiddeck_session.paths import Directories
    from droiddeck_session.plan.model import MountPoint


class ShellCommand(click.Command):
    """A command that keeps what follows `--` apart, so that `shell -- PROG` names no guest."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the words after `--` into the context and parse the rest."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["program"] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


@click.group()
def guest() -> None:
    """Make, import, list, show, remove and enter guests."""


@guest.command()
@click.argument("name", default=DEFAULT_NAME)
@click.option("--suite", default=making.DEFAULT_SUITE, show_default=True, help="Debian suite.")
@click.option("--arch", help="Debian architecture; the host's by default.")
@click.option("--include", default="", metavar="PKG,...", help="Packages beside the base and python3.")
@json_option()
def create(name: str, suite: str, arch: str | None, include: str, *, as_json: bool) -> None:
    """Make a guest from Debian's archive, with mmdebstrap."""
    folders, store = _store()
    words = tuple(word for word in include.replace(",", " ").split() if word)
    recipe = making.Recipe(name=name, suite=suite, arch=arch, include=words)
    tidy_up_first(say_so=True)
    with _progress() as tell:
        made = making.create(
            store, recipe, cache=folders.cache, environ=environment(), points=_points(folders), tell=tell
        )
    _tell_made(made, as_json=as_json)


@guest.command("import")
@click.argument("source", type=click.Path())
@click.argument("name", required=False)
@json_option()
def import_(source: str, name: str | None, *, as_json: bool) -> None:
    """Take in a rootfs: a tar archive, or a folder."""
    folders, store = _store()
    chosen = name if name is not None else default_name(source)
    tidy_up_first(say_so=True)
    note(f"importing {source} as guest {chosen}")
    made, left_out = import_tree(store, source, chosen, points=_points(folders))
    if left_out:
        note(f"{left_out} device nodes were left out: only root can make them; sessions bind the host's /dev")
    _tell_made(made, as_json=as_json)


@guest.command("list")
@json_option()
def list_(*, as_json: bool) -> None:
    """List the guests."""
    _, store = _store()
    guests = store.list()
    if as_json:
        answer({"guests": [_summary(each) for each in guests]})
        return
    if not guests:
        note("there are no guests; make one: droiddeck-session guest create")
        return
    rows = [("NAME", "ARCH", "CREATED", "FROM", "")]
    for each in guests:
        record = each.record
        known = (record.arch or "-", f"{record.created:%Y-%m-%d}", record.source) if record else ("-", "-", "-")
        rows.append((each.name, *known, f"cannot be used: {each.fault}" if each.fault else ""))
    widths = [max(len(exact(row[column])) for row in rows) for column in range(4)]
    for row in rows:
        cells = [exact(cell).ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)]
        click.echo("  ".join(cells).rstrip())


@guest.command()
@click.argument("name", default=DEFAULT_NAME, shell_complete=guest_names)
@json_option()
def show(name: str, *, as_json: bool) -> None:
    """Show what is known of a guest: a name, or the absolute path of a rootfs."""
    _, store = _store()
    found = store.locate(name)
    if as_json:
        packages = found.record.packages if found.record else {}
        answer({"guest": {**_summary(found), "packages": packages}})
        return
    lines = [("name", found.name), ("root", found.root), ("state", found.fault or "can be used")]
    if found.record is not None:
        record = found.record
        lines += [("from", record.source), ("arch", record.arch or "unknown"), ("created", record.created.isoformat())]
        lines += [("packages", str(len(record.packages)))]
        lines += [("", f"{package} {version}") for package, version in record.packages.items()]
    for key, value in lines:
        click.echo(f"{key:10}{exact(value)}")


@guest.command()
@click.argument("name", shell_complete=guest_names)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option()
def remove(name: str, *, yes: bool, as_json: bool) -> None:
    """Remove a guest with all that is in it."""
    _, store = _store()
    if not yes:
        root = store.locate(name).root
        if sys.stdin is None or not sys.stdin.isatty():
            raise UsageError(
                code="NOT_CONFIRMED", message=f"guest {name!r} is kept: there is nobody to ask", hint="give --yes"
            )
        if not click.confirm(f"Remove guest {exact(name)} with all that is in {exact(root)}?", err=True):
            raise UsageError(code="NOT_CONFIRMED", message=f"guest {name!r} is kept", hint="answer y, or give --yes")
    tidy_up_first(say_so=True)
    store.remove(name)
    if as_json:
        answer({"removed": name})
    else:
        note(f"removed guest {name}")


@guest.command(cls=ShellCommand, options_metavar="[NAME] [--root] [-- PROGRAM ARGS...]")
@click.argument("name", required=False, metavar="", shell_complete=guest_names)
@click.option("--root", "as_root", is_flag=True, help="As (emulated) root.")
@click.pass_context
def shell(ctx: click.Context, name: str | None, *, as_root: bool) -> int:
    """Start a login shell in a guest, or the program after `--`."""
    from droiddeck_session.session.launch import launch  # noqa: PLC0415 - the other verbs shall not pay for it

    tidy_up_first()
    environ = environment()
    flags: dict[str, object] = {"guest.name": name} if name is not None else {}
    if as_root:
        flags["guest.identity"] = "root"
    argv: tuple[str, ...] = ctx.meta["program"]
    if not argv:
        folders, store = _store()
        wanted = settings.load(directories=folders, environ=environ, flags=flags).settings.guest
        argv = (login_shell(store.find(wanted.name).root, as_root=wanted.identity == "root"), "-l")
    return launch(Request(kind="run", argv=argv), flags, environ=environ, tell=note)


def _store() -> tuple[Directories, GuestStore]:
    found = directories(environment())
    return found, GuestStore(found)


def _points(folders: Directories) -> tuple[MountPoint, ...]:
    rows = parse_tables(read_layers("binds.toml", folders), read_layers("environment.toml", folders))
    return rows.mount_points()


def _summary(found: Guest) -> dict[str, object]:
    record = found.record
    return {
        "name": found.name,
        "root": found.root,
        "usable": found.fault is None,
        "fault": found.fault,
        "source": record.source if record else None,
        "suite": record.suite if record else None,
        "arch": record.arch if record else None,
        "created": record.created.isoformat() if record else None,
    }


def _tell_made(made: Guest, *, as_json: bool) -> None:
    if as_json:
        answer({"guest": _summary(made)})
    else:
        note(f"guest {made.name} is ready: droiddeck-session guest shell {made.name}")


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str, float], None]]:
    """Show steps: as a bar on a terminal, as plain lines elsewhere."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda step, _share: note(step)
        return
    from rich import progress as bars  # noqa: PLC0415 - for a terminal only
    from rich.console import Console  # noqa: PLC0415 - for a terminal only

    columns = (
        bars.SpinnerColumn(),
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("looking at this machine", total=1.0)
        yield lambda step, share: progress.update(task, description=step, completed=share)
