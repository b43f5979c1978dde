# SPDX-License-Identifier: GPL-3.0-or-later
"""Which shell a person gets in a guest: passwd(5)'s seventh field, if the rootfs has such a program."""

from __future__ import annotations

import os
from typing import Final

from droiddeck_session.errors import FilesError
from droiddeck_session.rootfs import look_up, read_file

_FALLBACKS: Final = ("/bin/bash", "/bin/sh")
_LARGEST: Final = 1 << 20


def login_shell(root: str, *, as_root: bool) -> str:
    """Return the login shell of the caller in a rootfs; of root where the rootfs does not know the caller.

    Args:
        root: host path of the rootfs.
        as_root: whether root's is wanted.

    Raises:
        FilesError: NO_SHELL: the rootfs has none at all.
    """
    accounts = _shells(read_file(root, "/etc/passwd", limit=_LARGEST) or b"")
    uids = ("0",) if as_root else (str(os.geteuid()), "0")
    for path in (*(accounts[uid] for uid in uids if uid in accounts), *_FALLBACKS):
        if path.startswith("/") and look_up(root, path).executable:
            return path
    raise FilesError(
        code="NO_SHELL",
        message=f"the rootfs {root!r} has no shell: neither its /etc/passwd names one, nor is there {_FALLBACKS[1]}",
        hint="name a program: droiddeck-session guest shell NAME -- PROGRAM",
    )


def _shells(passwd: bytes) -> dict[str, str]:
    rows = [line.split(":") for line in os.fsdecode(passwd).splitlines()]
    return {row[2]: row[6] for row in reversed(rows) if len(row) == 7}  # noqa: PLR2004 - passwd(5) has seven fields
