# SPDX-License-Identifier: GPL-3.0-or-later
"""`droiddeck-session doctor`: is this machine fit for sessions, and if not, what to do."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

import click

from droiddeck_session.cli.output import answer, environment, json_option
from droiddeck_session.errors import EXIT_CHECK_FAILED, EXIT_OK
from droiddeck_session.interruption import tidy_up_first
from droiddeck_session.printable import exact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from droiddeck_session.diagnostics.finding import Finding

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red", "skip": "dim"}


@click.command()
@json_option()
def doctor(*, as_json: bool) -> int:
    """Check this machine and its default guest; each fault comes with a fix.

    Exit status: 0 nothing failed, 1 something did. What only some sessions need is a warning.
    """
    from droiddeck_session.diagnostics.doctor import examine, healthy, surroundings  # noqa: PLC0415 - heavy imports

    tidy_up_first()
    findings = examine(surroundings(environment()))
    if as_json:
        found = tuple(findings)
        answer({"healthy": healthy(found), "checks": [dataclasses.asdict(finding) for finding in found]})
    elif sys.stdout is not None and sys.stdout.isatty():
        found = _table(findings)
    else:
        found = _lines(findings)
    return EXIT_OK if healthy(found) else EXIT_CHECK_FAILED


def _lines(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Print findings as plain lines, each when it is known."""
    found = []
    for finding in findings:
        click.echo(f"{finding.status:<4}  {finding.id:<20}  {exact(finding.evidence)}")
        if finding.fix:
            click.echo(f"      fix: {exact(finding.fix)}")
        found.append(finding)
    return tuple(found)


def _table(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Print findings as a table for a person at a terminal; rich leaves the colours out under NO_COLOR."""
    from rich.console import Console  # noqa: PLC0415 - for a terminal only
    from rich.table import Table  # noqa: PLC0415 - for a terminal only
    from rich.text import Text  # noqa: PLC0415 - for a terminal only

    console = Console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("status", "check", "evidence and fix"):
        table.add_column(heading, no_wrap=heading != "evidence and fix", overflow="fold")
    found = []
    with console.status("examining this machine"):
        for finding in findings:
            found.append(finding)
            evidence = Text(exact(finding.evidence))
            if finding.fix:
                evidence.append(f"\nfix: {exact(finding.fix)}", style="cyan")
            table.add_row(Text(finding.status, style=_COLOURS[finding.status]), finding.id, evidence)
    console.print(table)
    return tuple(found)
