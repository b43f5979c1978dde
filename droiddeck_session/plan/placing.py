# SPDX-License-Identifier: GPL-3.0-or-later
"""Where binds go in the guest: links resolved, parents before children, and what must be there to mount on."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from droiddeck_session.errors import PlanError
from droiddeck_session.plan.guest_paths import ancestors, below, in_mount_order
from droiddeck_session.plan.model import SESSION, DroppedBind, MountPoint, StagedFile
from droiddeck_session.rootfs import UNREACHABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from droiddeck_session.facts import Facts, GuestFacts
    from droiddeck_session.plan.binds import Candidate
    from droiddeck_session.plan.capabilities import Capabilities
    from droiddeck_session.plan.model import Bind

_Kind = Literal["directory", "file", "other", "missing", "unreachable", "hidden"]
# linux/limits.h: NAME_MAX
LONGEST_NAME: Final = 255
_FOLDER_MODE: Final = 0o755
# Each process finds its own there (proc(5)): the kernel's links and folders of a process, and the names in /dev that
# lead to them. A bind is made in the view of whoever makes it, so no process of the guest would see it.
_OF_A_PROCESS: Final = re.compile(
    r"/proc/(?:self|thread-self|[0-9]+|mounts|net)(?:/.*)?|/dev/(?:fd(?:/.*)?|stdin|stdout|stderr)", re.DOTALL
)


@dataclass(kw_only=True)
class Placed:
    """Binds in the order in which they are mounted, and what they need.

    Attributes:
        sources: by guest path, what is bound there.
        mount_points: what must be made in the rootfs for a backend that mounts with the kernel.
        staged: what must be made for them in folders of the session.
    """

    sources: dict[str, Candidate] = field(default_factory=dict)
    dropped: list[DroppedBind] = field(default_factory=list)
    mount_points: list[MountPoint] = field(default_factory=list)
    staged: list[StagedFile] = field(default_factory=list)

    @property
    def binds(self) -> tuple[Bind, ...]:
        """The binds in their order."""
        return tuple(candidate.bind for candidate in self.sources.values())

    def cover(self, guest: str) -> Candidate | None:
        """Return what a guest path lies in or is bound at, by the longest prefix."""
        return next((self.sources[path] for path in (guest, *ancestors(guest)) if path in self.sources), None)


def place(
    candidates: Iterable[Candidate],
    facts: Facts,
    guest: GuestFacts,
    capabilities: Capabilities,
    offered: Mapping[str, tuple[StagedFile, ...]],
) -> Placed:
    """Put binds into the guest.

    Args:
        candidates: binds whose sources are there, later ones over earlier ones of the same guest path.
        facts: the machine.
        guest: the rootfs.
        capabilities: whether the backend shows a bind where the rootfs has nothing.
        offered: what the session can stage.

    Raises:
        PlanError: a bind that may not be left out cannot be put where it shall be; names it.
    """
    placed = Placed()
    ground = _Ground(
        rootfs={entry.resolved: entry.kind for entry in guest.paths.values()},
        host={path: entry.kind for path, entry in facts.paths.items()},
        session={file.path: file for files in offered.values() for file in files},
    )
    for candidate in _resolved(in_mount_order(candidates, _guest_path), guest):
        bind = candidate.bind
        cover = placed.cover(bind.guest)
        inside = None if cover is None else f"{cover.asked}{below(bind.guest, cover.bind.guest)}"
        there = ground.kind(bind.guest, inside)
        fault = _obstacle(candidate, cover, there)
        if fault is None and there in {"missing", "hidden"}:
            fault = _make(bind, inside, placed, tracer=capabilities.makes_mount_points, read_only=guest.read_only)
        if fault is None:
            placed.sources[bind.guest] = candidate
        elif candidate.optional:
            dropped = DroppedBind(host=bind.host, guest=candidate.asked_guest, origin=bind.origin, why=fault.why)
            placed.dropped.append(dropped)
        else:
            raise _refused(candidate, fault)
    return placed


@dataclass(frozen=True, kw_only=True)
class _Ground:
    """What is there before anything is bound: in the rootfs by resolved guest path, on the host, in the session."""

    rootfs: Mapping[str, _Kind]
    host: Mapping[str, _Kind]
    session: Mapping[str, StagedFile]

    def kind(self, guest: str, inside: str | None) -> _Kind:
        """Return what a bind at a guest path covers; `inside` is the path below the source of another bind."""
        if inside is None:
            return self.rootfs.get(guest, "missing")
        if not inside.startswith(SESSION):
            return self.host.get(inside, "missing")
        entry = self.session.get(inside.removeprefix(f"{SESSION}/"))
        if entry is None:
            return "missing"
        return "directory" if entry.is_folder else "file"


def _guest_path(candidate: Candidate) -> str:
    return candidate.bind.guest


def _resolved(candidates: Iterable[Candidate], guest: GuestFacts) -> list[Candidate]:
    """Follow the guest's links in guest paths; below another bind the rootfs has no say, the path stays as it is."""
    places: dict[str, str] = {}
    found = []
    for candidate in candidates:
        asked = candidate.bind.guest
        above = next((path for path in ancestors(asked) if path in places), None)
        if above is not None:
            places[asked] = f"{places[above]}{below(asked, above)}"
        else:
            places[asked] = guest.paths[asked].resolved
        found.append(replace(candidate, bind=candidate.bind.model_copy(update={"guest": places[asked]})))
    return in_mount_order(found, _guest_path)


class _Fault(NamedTuple):
    """Why a bind cannot be put where it shall be."""

    why: str
    code: str = "MOUNT_POINT"
    hint: str = "make that path, or choose another guest path"


def _obstacle(candidate: Candidate, cover: Candidate | None, there: _Kind) -> _Fault | None:
    """Return why nothing can be bound there, however it is made; None if nothing stands in the way."""
    bind = candidate.bind
    if bind.guest == "/":
        return _Fault("the guest has a link to its root there")
    if not candidate.for_each_process and any(
        _OF_A_PROCESS.fullmatch(path) for path in (candidate.asked_guest, bind.guest)
    ):
        return _Fault(
            "each process has its own there, so none of the guest's would see the bind",
            "BIND_IN_PROCESS",
            "bind it anywhere else: no bind reaches /proc/self, /proc/PID, /dev/fd and what leads there",
        )
    in_the_way = _in_the_way(bind.guest, cover, there)
    if in_the_way:
        return _Fault(in_the_way)
    if (there == "directory" and not bind.directory) or (there in {"file", "other"} and bind.directory):
        kinds = ("folder", "file") if bind.directory else ("file", "folder")
        return _Fault("a {} cannot be bound on a {}".format(*kinds), "BIND_KIND", "choose another guest path")
    return None


def _in_the_way(guest: str, cover: Candidate | None, there: _Kind) -> str:
    """Return why nothing of any kind can be at a guest path; empty if something can."""
    if any(len(name.encode(errors="surrogateescape")) > LONGEST_NAME for name in guest.split("/")):
        return f"a name in it is longer than {LONGEST_NAME} bytes"
    if there == "unreachable":
        return UNREACHABLE
    if cover is not None and not cover.bind.directory:
        return f"it lies below {cover.bind.guest!r}, where a file is bound"
    return ""


def _make(bind: Bind, inside: str | None, placed: Placed, *, tracer: bool, read_only: bool) -> _Fault | None:
    """Have something made to mount on; return why that cannot be, or None."""
    if inside is not None and inside.startswith(SESSION):
        path = inside.removeprefix(f"{SESSION}/")
        folder = StagedFile(path=path, mode=_FOLDER_MODE)
        placed.staged.append(folder if bind.directory else StagedFile(path=path, content=""))
        return None
    if tracer:
        return None
    if inside is not None:
        return _Fault(f"there is no {inside!r} on the host to mount on")
    if read_only:
        return _Fault("the rootfs has nothing there to mount on and cannot be written")
    placed.mount_points.append(MountPoint(guest=bind.guest, directory=bind.directory))
    return None


def _refused(candidate: Candidate, fault: _Fault) -> PlanError:
    bind = candidate.bind
    return PlanError(
        code=fault.code,
        message=f"{bind.origin}: bind {bind.host!r} at {candidate.asked_guest!r}: {fault.why}",
        hint=fault.hint,
    )
