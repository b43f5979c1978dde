# SPDX-License-Identifier: GPL-3.0-or-later
"""Running the tools that make and remove a rootfs inside namespaces of their own.

A private mount namespace and a process namespace make an interrupted tool harmless: when it is killed, every process
and every mount of its rootfs goes with it. Without root, a user namespace adds the ids that a Debian needs: the caller
is its root, and the caller's subordinate ids (subuid(5)) are the rest.
"""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path
from typing import Final

from droiddeck_session import processes, root_mount
from droiddeck_session.errors import NotPermittedError

USER_NAMESPACE: Final = ("unshare", "--user", "--map-root-user", "--map-auto")

# setpriv(1) has a tool end when we die. When that is unshare, it ends its child, and with the child, process 1 of its
# namespace, all end.
_DIES_WITH_US: Final = ("setpriv", "--pdeathsig", "KILL")
_ENCLOSED: Final = ("--mount", "--pid", "--fork", "--kill-child")


def enclosed(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the argv that runs `argv` as root (the namespace's, if need be) and ends when the caller does."""
    entry = ("unshare",) if os.geteuid() == 0 else USER_NAMESPACE
    return dying_with_us((*entry, *_ENCLOSED, "--", *argv))


def dying_with_us(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the argv that runs `argv` so that the kernel kills it when the caller dies, however that comes.

    Android has no setpriv; there a tool whose caller is killed runs to its end.
    """
    return (*_DIES_WITH_US, "--", *argv) if shutil.which(_DIES_WITH_US[0]) else argv


def require_own_mounts() -> None:
    """Check that mounts can be kept apart from the host's, root or not.

    Raises:
        NotPermittedError: ROOT_NOT_MOUNTED; names the fix.
    """
    if not root_mount.root_is_mounted():
        raise NotPermittedError(
            code="ROOT_NOT_MOUNTED",
            message=f"a guest is made with mounts of its own: {root_mount.WHY_NOT}",
            hint=f"{root_mount.FIX}; or bring a guest: droiddeck-session guest import",
        )


def require_user_namespace() -> None:
    """Check that the caller can have a user namespace with the ids that a rootfs needs.

    Raises:
        NotPermittedError: NO_USER_NAMESPACE; names what is missing and the fix.
    """
    if shutil.which("newuidmap") is None or shutil.which("newgidmap") is None:
        raise _refusal("newuidmap and newgidmap are not installed", "apt-get install uidmap")
    uid = os.geteuid()
    try:
        login = pwd.getpwuid(uid).pw_name
    except KeyError:
        login = str(uid)
    for table in ("/etc/subuid", "/etc/subgid"):
        if not _has_range(table, {login, str(uid)}):
            fix = f"usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {login}"
            raise _refusal(f"{table} gives {login!r} no subordinate ids", fix)
    trial = processes.run((*USER_NAMESPACE, "true"))
    if trial.returncode != 0:
        why = os.fsdecode(trial.stderr).strip() or processes.ending(trial.returncode)
        knobs = "kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0"
        raise _refusal(why, f"let users have user namespaces (sysctl: {knobs}, whichever exists)")


def _has_range(table: str, owners: set[str]) -> bool:
    try:
        lines = Path(table).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return any(line.split(":")[0] in owners for line in lines)


def _refusal(why: str, fix: str) -> NotPermittedError:
    return NotPermittedError(
        code="NO_USER_NAMESPACE",
        message=f"without root a guest is made in a user namespace, which this account cannot have: {why}",
        hint=f"as root: {fix}; or create the guest as root; or bring one: droiddeck-session guest import",
    )
