# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the default guest and of the user's binds: what a session would stumble over, seen from outside.

A link is read in guest terms, as in a session. One that leads somewhere on the host but nowhere in the guest is what
users take for a missing library or an empty home.
"""

from __future__ import annotations

import itertools
import os
import posixpath
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from droiddeck_session import facts
from droiddeck_session.diagnostics.finding import Finding, Surroundings
from droiddeck_session.errors import DroiddeckError
from droiddeck_session.guest.store import GuestStore
from droiddeck_session.layers import read_layers
from droiddeck_session.plan.guest_paths import below, normalise
from droiddeck_session.plan.model import OWN_ORIGIN, SESSION
from droiddeck_session.plan.tables import parse_tables
from droiddeck_session.rootfs import look_up
from droiddeck_session.templates import expand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from droiddeck_session.guest.store import Guest
    from droiddeck_session.plan.tables import BindRow, Tables

# uname's machine: where its dynamic loaders are, glibc's and musl's
LOADERS: Final = {
    "x86_64": ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"),
    "aarch64": ("/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-aarch64.so.1"),
}
ENV: Final = "/usr/bin/env"
PYTHON: Final = "/usr/bin/python3"
# The kernel's own places, which every session binds. Not /tmp and /run: those are the session's own, not the host's.
_FILLED: Final = ("/proc", "/sys", "/dev")
# What look_up() says where nothing is.
_NOTHING: Final = frozenset({"missing", "unreachable"})
# Of a folder with very many entries the first tell enough.
_ENTRY_LIMIT: Final = 2000
_NAMED_LIMIT: Final = 5


def default_guest(seen: Surroundings) -> Iterator[Finding]:
    """Is the default guest there, made for this machine, and whole?"""
    guest = GuestStore(seen.directories).find(seen.loaded.settings.guest.name)
    yield Finding(id="guest", status="ok", evidence=f"{guest.name}: {guest.root}")
    questions = facts.Questions(host=frozenset(), guest=frozenset())
    known = facts.gather(questions, guest=guest, environ=seen.environ)
    assert known.guest is not None  # noqa: S101 - a guest was given
    yield _machine(known.guest.made_for, known.uname.machine)
    yield _programs(guest.root, known.guest.made_for or known.uname.machine)
    yield _mount_points(guest, seen)
    homes = {home for uid, (_, home) in known.guest.users.items() if uid in {0, seen.uid}}
    yield _links(guest, homes)


def _machine(made_for: str | None, machine: str) -> Finding:
    if made_for == machine:
        return Finding(id="guest.machine", status="ok", evidence=f"made for {machine}, as this machine is")
    return Finding(
        id="guest.machine",
        status="fail",
        evidence=f"made for {made_for or 'no machine that its ' + ENV + ' would tell'}, but this machine is {machine}",
        fix="droiddeck-session guest create makes one for this machine; its name goes into guest.name",
    )


def _programs(root: str, machine: str) -> Finding:
    loaders = LOADERS.get(machine, ())
    lacking = [path for path in (ENV, PYTHON) if not look_up(root, path).executable]
    if loaders and not any(look_up(root, path).kind == "file" for path in loaders):
        lacking.append(loaders[0])
    if not lacking:
        return Finding(id="guest.programs", status="ok", evidence=f"{ENV}, {PYTHON} and the dynamic loader are there")
    # The session inner program and the stand-ins are Python; run needs only env.
    fatal = lacking != [PYTHON]
    return Finding(
        id="guest.programs",
        status="fail" if fatal else "warn",
        evidence=f"not there: {', '.join(lacking)}" + ("" if fatal else " (steam and desktop need it, run does not)"),
        fix="make or import the guest again" if fatal else "install python3 in the guest",
    )


def _mount_points(guest: Guest, seen: Surroundings) -> Finding:
    wanted = _tables(seen).mount_points()
    lacking = [point.guest for point in wanted if look_up(guest.root, point.guest).kind in _NOTHING]
    if not lacking:
        return Finding(id="guest.mount-points", status="ok", evidence=f"all {len(wanted)} fixed mount points are there")
    return Finding(
        id="guest.mount-points",
        status="warn",
        evidence=f"not there: {', '.join(lacking)}; kernel backends make them when a session starts",
        fix="if the rootfs cannot be written, make them by hand: empty files and folders; guest import makes them",
    )


def _links(guest: Guest, homes: set[str]) -> Finding:
    folders = sorted({"/", *homes})
    leaving = [link for folder in folders for link in leaving_links(guest.root, folder)]
    if not leaving:
        evidence = f"no link in {', '.join(folders)} leads to the host"
        return Finding(id="guest.links", status="ok", evidence=evidence)
    return _finding_of_links("guest.links", leaving)


def _finding_of_links(identity: str, leaving: Sequence[Link]) -> Finding:
    named = leaving[:_NAMED_LIMIT]
    more = f" and {len(leaving) - len(named)} more" if len(leaving) > len(named) else ""
    return Finding(
        id=identity,
        status="warn",
        evidence="the guest has not what these links lead to on the host: "
        + "; ".join(f"{link.guest} -> {link.target}" for link in named)
        + more,
        fix="show it in the guest: " + " ".join(dict.fromkeys(f"--bind {shlex.quote(link.bind)}" for link in named)),
    )


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link that leads somewhere on the host and nowhere in the guest.

    Attributes:
        guest: guest path of the link.
        target: as the link has it.
        host_target, guest_target: what that means on either side.
    """

    guest: str
    target: str
    host_target: str
    guest_target: str

    @property
    def bind(self) -> str:
        """The bind that makes it work."""
        same = self.host_target == self.guest_target
        return self.host_target if same else f"{self.host_target}:{self.guest_target}"


def leaving_links(root: str, folder: str) -> list[Link]:
    """Return the links of one folder of the guest that lead somewhere on the host only.

    Args:
        root: host path of the rootfs.
        folder: guest path.
    """
    found = look_up(root, folder)
    if found.kind != "directory":
        return []
    links = _links_in(root + found.resolved.rstrip("/"), folder)
    return [link for link in links if look_up(root, link.guest).kind in _NOTHING]


def binds_of_the_user(seen: Surroundings) -> Iterator[Finding]:
    """Are the tables well formed, is what the user binds there, and do links in it lead out of it?"""
    tables = _tables(seen)
    yield Finding(id="bind", status="ok", evidence="binds.toml and environment.toml can be used")
    name = seen.loaded.settings.guest.name
    try:
        root = GuestStore(seen.directories).find(name).root
    except DroiddeckError:
        root = None  # told by default_guest
    # What a session stages for itself has nothing of the host's.
    of_the_host = [sourced.row for sourced in tables.binds if not sourced.row.host.startswith(SESSION)]
    bound = [place for place in (expand(row.at, {}) for row in of_the_host) if place is not None]
    for origin, row in tables.binds:
        host, place = expand(row.host, {}), expand(row.at, {})
        # What names a fact is not the same on each machine and is the plan's to explain.
        if origin.startswith(OWN_ORIGIN) or host is None or place is None or host.startswith(SESSION):
            continue
        leaving = [link for link in _links_in(host, place) if not _shown(link.guest_target, bound, root)]
        yield _bind_of_the_user(f"{origin}: {host}", facts.host_path(host).kind, row, leaving)


def _shown(path: str, bound: Sequence[str], root: str | None) -> bool:
    """Whether a guest path is in the rootfs or below what is bound."""
    if any(below(path, place) is not None for place in bound):
        return True
    return root is not None and look_up(root, path).kind not in _NOTHING


def _bind_of_the_user(what: str, kind: str, row: BindRow, leaving: Sequence[Link]) -> Finding:
    identity = f"bind.{row.at}"
    if kind in {"missing", "hidden"}:
        where = "is not there" if kind == "missing" else "lies in a folder that you may not search"
        return Finding(
            id=identity,
            status="fail" if row.required else "warn",
            evidence=f"{what} {where}; {'it is required' if row.required else 'sessions go without it'}",
            fix="make it, or take the row out",
        )
    if leaving:
        return _finding_of_links(identity, leaving)
    return Finding(id=identity, status="ok", evidence=f"{what} is there")


def _links_in(folder: str, guest_folder: str) -> Iterator[Link]:
    """Yield the links of a host folder that lead somewhere on the host, read as lying in a folder of the guest."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in itertools.islice(entries, _ENTRY_LIMIT) if entry.is_symlink())
    except OSError:
        return
    for name in names:
        path = f"{folder}/{name}"
        target = os.readlink(path)  # noqa: PTH115 - paths are str with surrogateescape
        guest_target = normalise(posixpath.join("/", guest_folder, target))
        filled = any(below(guest_target, place) is not None for place in _FILLED)
        if not filled and os.path.exists(path):  # noqa: PTH110 - as above
            yield Link(
                guest=posixpath.join(guest_folder, name),
                target=target,
                host_target=posixpath.normpath(posixpath.join(folder, target)),
                guest_target=guest_target,
            )


def _tables(seen: Surroundings) -> Tables:
    return parse_tables(read_layers("binds.toml", seen.directories), read_layers("environment.toml", seen.directories))
