# SPDX-License-Identifier: GPL-3.0-or-later
"""From a request to a plan: settings, guest, backend and facts are brought together here, in that order.

The order decides which of several faults a user hears of first: a wrong setting, then a missing guest, then a backend
that cannot run here, then whatever planning refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from droiddeck_session import facts, layers, paths, settings
from droiddeck_session.backends import registry
from droiddeck_session.backends.interface import ProbeRequest
from droiddeck_session.guest.store import GuestStore
from droiddeck_session.plan import build, tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from droiddeck_session.backends.interface import Backend
    from droiddeck_session.guest.store import Guest
    from droiddeck_session.paths import Directories
    from droiddeck_session.plan.capabilities import Capabilities
    from droiddeck_session.plan.model import Plan
    from droiddeck_session.plan.request import Request
    from droiddeck_session.settings import LoadedSettings


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A symbolic plan and what it was made from; `guest` is None for a backend without a rootfs."""

    plan: Plan
    directories: Directories
    loaded: LoadedSettings
    guest: Guest | None
    backend: Backend
    capabilities: Capabilities


def probe_request(environ: Mapping[str, str], loaded: LoadedSettings, *, machine: str) -> ProbeRequest:
    """Return what backends may know for their probes: the programs that the settings chose among it."""
    chosen = {"proot": loaded.settings.backend.proot, "bwrap": loaded.settings.backend.bwrap}
    programs = {name: program for name, program in chosen.items() if program is not None}
    return ProbeRequest(environ=environ, programs=programs, machine=machine)


def choose_backend(
    environ: Mapping[str, str], loaded: LoadedSettings, directories: Directories
) -> tuple[Backend, Capabilities]:
    """Return the backend that the settings name, or for `auto` the first that confines.

    Raises:
        BackendError: none can be used; names each with its reason.
    """
    request = probe_request(environ, loaded, machine=facts.uname().machine)
    return registry.choose(loaded.settings.backend.name, request, directories.cache)


def prepare(request: Request, flags: Mapping[str, object], *, environ: Mapping[str, str]) -> Prepared:
    """Return the plan for a request on this machine.

    Args:
        request: what the user asks for.
        flags: settings given on the command line, by dotted key.
        environ: the caller's environment.

    Raises:
        DroiddeckError: the request cannot be met; names the thing and the fix.
    """
    directories = paths.directories(environ)
    loaded = settings.load(directories=directories, environ=environ, flags=flags)
    rows = tables.parse_tables(
        layers.read_layers("binds.toml", directories), layers.read_layers("environment.toml", directories)
    )
    needs_rootfs = loaded.settings.backend.name != "direct"
    guest = GuestStore(directories).find(loaded.settings.guest.name) if needs_rootfs else None
    backend, capabilities = choose_backend(environ, loaded, directories)
    known = facts.gather(build.questions(request, loaded, rows), guest=guest, environ=environ)
    return Prepared(
        plan=build.build(request, loaded, rows, known, capabilities),
        directories=directories,
        loaded=loaded,
        guest=guest,
        backend=backend,
        capabilities=capabilities,
    )
