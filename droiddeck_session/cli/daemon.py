# SPDX-License-Identifier: GPL-3.0-or-later
"""`droiddeck-session daemon` and `host`: sessions for other processes to drive."""

from __future__ import annotations

import click

from droiddeck_session.cli.output import environment, note


@click.command()
def daemon() -> None:
    """Serve `start`, `stop`, `status` and the like until TERM, then end all sessions.

    It listens at $XDG_RUNTIME_DIR/droiddeck-session/control, at DROIDDECK_SOCKET, or on the socket systemd passes.
    """
    from droiddeck_session.daemon.service import serve  # noqa: PLC0415 - --help shall not pay for it

    serve(environment(), note)


@click.command()
def host() -> None:
    """Serve one client on standard input and output; when it closes them or dies, all its sessions end.

    The protocol is the daemon's: for an Android app that starts this program through HostProcess.
    """
    from droiddeck_session.daemon.service import host as serve_client  # noqa: PLC0415 - --help shall not pay for it

    serve_client(environment())
