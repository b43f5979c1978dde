# SPDX-License-Identifier: GPL-3.0-or-later
"""From rows and flags to the binds of one session: which apply, whether their sources are there, what is refused.

Where they are put in the guest is `placing.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from droiddeck_session.errors import PlanError
from droiddeck_session.plan.conditions import MISSING, THERE
from droiddeck_session.plan.guest_paths import ancestors, below, mountable
from droiddeck_session.plan.model import OWN_ORIGIN, SESSION, Bind, DroppedBind
from droiddeck_session.templates import expand, literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from droiddeck_session.facts import Facts, HostPath
    from droiddeck_session.plan.capabilities import Capabilities
    from droiddeck_session.plan.model import Kind, StagedFile
    from droiddeck_session.plan.request import Request, RequestedBind
    from droiddeck_session.plan.tables import BindRow, Tables


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A bind whose source is there, not yet placed in the guest.

    Attributes:
        bind: what is bound.
        asked: the host path as it was asked for, links not resolved.
        asked_guest: the guest path as it was asked for.
    """

    bind: Bind
    asked: str
    asked_guest: str

    @property
    def optional(self) -> bool:
        """Whether the session goes on without it, however it fails: a row of the project's own that is not required."""
        return not self.bind.required and self.bind.origin.startswith(OWN_ORIGIN)

    @property
    def for_each_process(self) -> bool:
        """Whether it stands for each process's own by design: a row of ours for a name in /dev that Android lacks."""
        return self.optional and self.asked.startswith("/proc/self/") and self.asked_guest.startswith("/dev/")


def bind_questions(request: Request, tables: Tables, *, cwd: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return templates of the host paths and of the guest paths that the binds of a session depend on.

    Args:
        request: the flags among it.
        tables: the rows.
        cwd: the working directory, if one is asked for, which may lie in a bind.
    """
    rows = [sourced.row for sourced in tables.binds]
    pairs = [(row.host, row.at) for row in rows]
    pairs += [(literal(bind.host), literal(bind.guest)) for bind in request.binds]
    host = {path for path, _ in pairs}
    host |= {path for row in rows for path in row.when.paths()}
    host |= {path for entry in tables.variables for path in entry.row.when.paths()}
    guest = {path for _, path in pairs}
    guest |= {literal(path) for entry in tables.variables for path in entry.row.when.in_rootfs}
    sources: dict[str, list[str]] = {}
    for source, place in pairs:
        sources.setdefault(place, []).append(source)
    wanted = [*(place for _, place in pairs), *cwd]
    # What lies in another bind must be there on the host.
    for place in wanted:
        for above in (place, *ancestors(place)):
            host |= {f"{source.rstrip('/')}{below(place, above)}" for source in sources.get(above, ())}
    return frozenset(path for path in host if not path.startswith(SESSION)), frozenset(guest)


def candidates(
    request: Request,
    tables: Tables,
    facts: Facts,
    capabilities: Capabilities,
    *,
    names: Mapping[str, str],
    offered: Mapping[str, tuple[StagedFile, ...]],
) -> tuple[list[Candidate], list[DroppedBind]]:
    """Return the binds of rows and flags whose sources are there, and what is gone without.

    Args:
        request: the flags among it.
        tables: the rows.
        facts: the machine.
        capabilities: what the backend can express.
        names: what names of host paths stand for.
        offered: what the session can stage.

    Raises:
        PlanError: a required source is missing, or the backend cannot express a bind; names it.
    """
    found: list[Candidate] = []
    dropped: list[DroppedBind] = []
    for asked, kind in (*_of_rows(tables, facts, names, offered, request.kind), *map(_of_flag, request.binds)):
        if asked.host.startswith(SESSION):
            found.append(_candidate(_expressible(asked, capabilities), asked))
            continue
        source = facts.paths.get(asked.host, MISSING)
        fault = _fault(asked.host, source, kind)
        if fault and asked.required:
            raise PlanError(
                code="BIND_MISSING",
                message=f"{asked.origin}: bind {asked.host!r} at {asked.guest!r}: {fault}",
                hint=f"make {asked.host!r} available, or leave the bind out",
            )
        if fault:
            dropped.append(DroppedBind(host=asked.host, guest=asked.guest, origin=asked.origin, why=fault))
            continue
        bind = asked.model_copy(update={"host": source.resolved, "directory": source.kind == "directory"})
        found.append(_candidate(_expressible(bind, capabilities), asked))
    return found, dropped


def _candidate(bind: Bind, asked: Bind) -> Candidate:
    return Candidate(bind=bind, asked=asked.host, asked_guest=asked.guest)


def _of_rows(
    tables: Tables, facts: Facts, names: Mapping[str, str], offered: Mapping[str, tuple[StagedFile, ...]], kind: Kind
) -> Iterator[tuple[Bind, str | None]]:
    """Yield the bind of each row that applies, and what its source must be."""
    for origin, row in tables.binds:
        host, guest = expand(row.host, names), expand(row.at, names)
        if host is None or guest is None or not row.when.holds(facts, names, kind):
            continue
        entry = offered.get(host.removeprefix(f"{SESSION}/")) if host.startswith(SESSION) else None
        if entry is None and host.startswith(SESSION):
            continue
        yield _bind_of_row(origin, row, host, guest, directory=entry is not None and entry[0].is_folder), row.kind


def _bind_of_row(origin: str, row: BindRow, host: str, guest: str, *, directory: bool) -> Bind:
    try:
        place = mountable(guest)
    except ValueError as error:
        raise PlanError(
            code="BIND_SYNTAX",
            message=f"{origin}: bind {host!r} at {row.at!r}: the guest path {guest!r} {error}",
            hint="correct what its names stand for: settings of [android], XDG_RUNTIME_DIR, WAYLAND_DISPLAY",
        ) from None
    return Bind(
        host=host,
        guest=place,
        reason=row.reason,
        origin=origin,
        required=row.required,
        read_only=row.read_only,
        directory=directory,
    )


def _of_flag(bind: RequestedBind) -> tuple[Bind, None]:
    made = Bind(
        host=bind.host,
        guest=bind.guest,
        reason="asked for on the command line",
        origin=bind.origin,
        required=True,
        read_only=bind.read_only,
        directory=False,
    )
    return made, None


def _fault(host: str, source: HostPath, kind: str | None) -> str:
    """Return what is wrong with a source; empty if nothing is."""
    if not host.startswith("/"):
        return "its path is not absolute"
    if source.kind not in THERE:
        return "there is no such file" if source.kind == "missing" else "the caller may not look at it"
    if kind is not None and (kind == "directory") is not (source.kind == "directory"):
        return "it is a folder, not a file" if source.kind == "directory" else "it is no folder"
    return ""


def _expressible(bind: Bind, capabilities: Capabilities) -> Bind:
    """Return the bind, if the backend can hold and say it."""
    if bind.read_only and not capabilities.read_only_binds:
        raise PlanError(
            code="READ_ONLY_BIND",
            message=f"{bind.origin}: bind {bind.host!r} at {bind.guest!r}: "
            f"backend {capabilities.backend} cannot keep the guest from writing through it",
            hint="use a backend that can (--backend bwrap, --backend chroot), or bind it writable",
        )
    path = next((path for path in (bind.host, bind.guest) if ":" in path), None)
    if path is not None and not capabilities.colon_in_binds:
        raise PlanError(
            code="COLON_IN_BIND",
            message=f"{bind.origin}: bind {bind.host!r} at {bind.guest!r}: "
            f"backend {capabilities.backend} cannot express the colon in {path!r}",
            hint="use a backend that can (--backend bwrap, --backend chroot), or bind a folder above it",
        )
    return bind
