# SPDX-License-Identifier: GPL-3.0-or-later
"""What a request to start a session carries of whoever asks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from droiddeck_session.cli.output import environment

if TYPE_CHECKING:
    from collections.abc import Mapping


def client_half(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a request to start a session carries of its client: environment, folder and mask."""
    mask = os.umask(0)
    os.umask(mask)
    try:
        here = str(Path.cwd())
    except FileNotFoundError:
        here = "/"
    wanted = {name: options[name] for name in ("url", "cwd") if options.get(name) is not None}
    lists = {name: list(options.get(name) or ()) for name in ("argv", "binds", "ro_binds", "variables")}
    return {**wanted, **lists, "environ": environment(), "directory": here, "umask": mask}
