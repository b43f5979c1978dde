# SPDX-License-Identifier: GPL-3.0-or-later
"""`droiddeck-session version`."""

from __future__ import annotations

import platform

import click

from droiddeck_session import __version__
from droiddeck_session.cli.output import answer, json_option


@click.command()
@json_option()
def version(*, as_json: bool) -> None:
    """Print the version of this program and of the Python that runs it."""
    if as_json:
        answer({"version": __version__, "python": platform.python_version(), "machine": platform.machine()})
    else:
        click.echo(f"droiddeck-session {__version__} (Python {platform.python_version()})")
