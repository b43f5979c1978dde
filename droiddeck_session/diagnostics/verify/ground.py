# SPDX-License-Identifier: GPL-3.0-or-later
"""Where one run of `verify` happens: a rootfs of its own around the guest's programs, and the plan that enters it.

The guest's /usr is bound, so the guest itself is not written; everything that cases write to is the run's own copy.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from droiddeck_session.diagnostics.verify.prepared import BINDS, HELD, ROOT, Entry, entries
from droiddeck_session.diagnostics.verify.tree import Tree
from droiddeck_session.errors import FilesError
from droiddeck_session.guest.staging import PROGRAMS
from droiddeck_session.plan.guest_paths import in_mount_order
from droiddeck_session.plan.model import Bind, FastPath, GuestReference, Identity, Plan, Variable
from droiddeck_session.rootfs import look_up, read_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from droiddeck_session.guest.store import Guest

PYTHON: Final = "/usr/bin/python3"
PROGRAM: Final = "/opt/droiddeck/verify_run.py"
_SHELL: Final = "/bin/sh"
_LARGEST_SHELL: Final = 4 << 20
# Links into /usr in a merged guest, folders in an old one.
_OF_USR: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# What the guest's folders must not be on the host: a backend that lets a call through must find nothing to change.
_OWN_NAMES: Final = ("ordinary", "links", "bound", "bound-file", "deep", "names", "programs", "scratch")
# So many folders above the rootfs are the run's own: `..` of a call that is let through stays in them.
_DEPTH: Final = 10


@dataclass(frozen=True, kw_only=True)
class Ground:
    """One run's own files.

    Attributes:
        folder: holds all of them.
        tree: what is compared.
        binds: for the plan.
    """

    folder: str
    tree: Tree
    binds: tuple[Bind, ...]

    def plan(self, backend: str, identity: Identity, argv: Sequence[str]) -> Plan:
        """Return the concrete plan of a program in this run's rootfs."""
        return Plan(
            kind="run",
            label="verify",
            guest=GuestReference(name="verify", root=f"{self.tree.folder}/{ROOT}"),
            backend=backend,
            identity=identity,
            kernel_release=None,
            nodename=None,
            cwd="/",
            binds=self.binds,
            environment=(
                Variable(name="PATH", value="/usr/bin:/bin", origin="verify"),
                Variable(name="LC_ALL", value="C.UTF-8", origin="verify"),
            ),
            argv=tuple(argv),
            fast_path=FastPath(enabled=False, why_off="verify asks the tracer"),
            session=f"{self.folder}/session",
        )

    def remove(self) -> None:
        """Remove all of it."""
        self.tree.remove()
        shutil.rmtree(self.folder, ignore_errors=True)


def refuse_names_of_the_host() -> None:
    """Check that no folder of the prepared tree has a namesake at the top of the host.

    Raises:
        FilesError: one has; names it.
    """
    for name in _OWN_NAMES:
        if os.path.lexists(f"/{name}"):
            raise FilesError(
                code="NAME_ON_HOST",
                message=f"the host has /{name}, which a call that is not translated would change",
                hint="run verify on a machine or in a container without it",
            )


def lay_out(folder: str, guest: Guest, *, emulated: bool) -> Ground:
    """Make the files of one run.

    Args:
        folder: an empty folder, links resolved.
        guest: whose programs run.
        emulated: the ids inside are not the caller's. The truth's root enters any folder of its own then, where the
            caller could not see what it did, so none is closed.

    Raises:
        FilesError: the guest lacks what is needed.
    """
    shell = read_file(guest.root, _SHELL, limit=_LARGEST_SHELL)
    if shell is None or not look_up(guest.root, PYTHON).executable:
        raise FilesError(
            code="GUEST_LACKS_PROGRAMS",
            message=f"guest {guest.name!r} lacks {_SHELL} or {PYTHON}, which ask the questions",
            hint="install python3 in it (not python3-minimal), or name another guest with --guest",
        )
    for name in ("session/tracer", "programs"):
        Path(folder, name).mkdir(parents=True)
    for source in PROGRAMS.glob("verify_*.py"):
        shutil.copyfile(source, Path(folder, "programs", source.name))
    below = "/".join([folder, *(str(level) for level in range(_DEPTH))])
    os.makedirs(below)
    wanted, binds = dict(entries(shell)), dict(_system_binds(guest.root))
    if emulated:
        wanted |= {path: replace(entry, mode=0o700) for path, entry in wanted.items() if _is_closed(entry)}
    for name in _OF_USR:
        host = f"{guest.root}/{name}"
        if os.path.islink(host):
            wanted[f"{ROOT}/{name}"] = Entry(kind="link", content=os.fsencode(os.readlink(host)))
        elif os.path.isdir(host):
            wanted[f"{ROOT}/{name}"] = Entry(kind="folder", mode=0o755)
            binds[f"/{name}"] = host
    tree = Tree(below, wanted, HELD)
    binds |= {guest_path: f"{below}/{host}" for guest_path, host in BINDS.items()}
    binds["/opt/droiddeck"] = f"{folder}/programs"
    listed = (_bind(host, guest_path) for guest_path, host in binds.items())
    return Ground(folder=folder, tree=tree, binds=tuple(in_mount_order(listed, lambda bind: bind.guest)))


def _is_closed(entry: Entry) -> bool:
    return entry.kind == "folder" and entry.mode == 0


def _system_binds(root: str) -> Iterator[tuple[str, str]]:
    yield "/usr", os.path.realpath(f"{root}/usr")
    yield "/proc", "/proc"
    yield "/dev", "/dev"


def _bind(host: str, guest: str) -> Bind:
    return Bind(host=host, guest=guest, reason="verify", origin="verify", directory=os.path.isdir(host))
