# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding a backend's program: the one of the settings, else the one on PATH; and what tells that it was replaced."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from droiddeck_session.backends.interface import HOST_PATH

if TYPE_CHECKING:
    from droiddeck_session.backends.interface import ProbeRequest


def find_program(name: str, request: ProbeRequest) -> tuple[str, str]:
    """Return the absolute path of a backend's program, or an empty text and why there is none."""
    chosen = request.programs.get(name)
    if chosen is None:
        found = shutil.which(name, path=request.environ.get("PATH", HOST_PATH))
        return (os.path.abspath(found), "") if found else ("", f"{name} is not on PATH")  # noqa: PTH100 - text
    path = os.path.abspath(os.path.expanduser(chosen))  # noqa: PTH100, PTH111 - a text that may hold any byte
    if not Path(path).is_file():
        return "", f"backend.{name}: {path} is no file"
    if not os.access(path, os.X_OK):
        return "", f"backend.{name}: {path} may not be executed"
    return path, ""


def fingerprint(path: str) -> str:
    """Return what changes when a program is replaced: path, device, inode, size, time of change. Cheap."""
    try:
        found = Path(path).stat()
    except OSError:
        return f"{path} missing"
    return f"{path} {found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_mode}"
