# SPDX-License-Identifier: GPL-3.0-or-later
"""`droiddeck-session top`: what a session's processes use, live."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import click

from droiddeck_session.cli.output import environment
from droiddeck_session.printable import exact

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = ("PID", "STATE", "CPU %", "MEMORY MiB", "THREADS", "SWITCHES/s", "NAME")
_MIB = 1 << 20


@click.command()
@click.argument("session", metavar="[ID]", default="")
@click.option(
    "--interval", type=click.FloatRange(0.1, 60), default=1.0, show_default=True, help="Seconds between two looks."
)
@click.option("--rounds", type=click.IntRange(1), help="End after so many looks; without, with the session.")
def top(session: str, interval: float, rounds: int | None) -> None:
    """Show what the processes of a session use, the busiest first, until it is over; once where that is no terminal."""
    from rich.console import Console  # noqa: PLC0415 - --help shall not pay for it
    from rich.live import Live  # noqa: PLC0415 - as above

    from droiddeck_session.daemon.client import call  # noqa: PLC0415 - as above

    own = environment()
    before = call(own, "stats", session=session)
    looked = time.monotonic()
    console = Console()
    if not console.is_terminal and rounds is None:
        rounds = 1
    with contextlib.ExitStack() as stack:
        live = None
        if console.is_terminal:
            live = stack.enter_context(Live(_table(before, before, interval), console=console, auto_refresh=False))
        while before["state"] not in {"stopped", "failed"} and rounds != 0:
            time.sleep(interval)
            now = call(own, "stats", session=before["session"])
            passed, looked = time.monotonic() - looked, time.monotonic()
            table = _table(now, before, passed)
            if live:
                live.update(table, refresh=True)
            else:
                console.print(table)
            before = now
            rounds = rounds - 1 if rounds else None


def _table(now: dict[str, Any], before: dict[str, Any], passed: float) -> Table:
    from rich.table import Table  # noqa: PLC0415 - --help shall not pay for it
    from rich.text import Text  # noqa: PLC0415 - as above

    earlier = {process["pid"]: process for process in before["processes"]}
    table = Table(title=f"{now['session']}: {now['state']}, {now['tree']['processes']} processes")
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in {"STATE", "NAME"} else "right")

    def rate(process: dict[str, Any], name: str) -> float:
        then = earlier.get(process["pid"], process)
        return ((process[name] or 0) - (then[name] or 0)) / passed

    for process in sorted(now["processes"], key=lambda process: -rate(process, "cpu_seconds")):
        table.add_row(
            str(process["pid"]),
            process["state"],
            f"{100 * rate(process, 'cpu_seconds'):.0f}",
            f"{(process['resident_bytes'] or 0) / _MIB:.1f}",
            str(process["threads"] or "-"),
            f"{rate(process, 'switches'):.0f}",
            # Not markup: a process may call itself anything.
            Text(exact(process["name"])),
        )
    return table
