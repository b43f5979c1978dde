# SPDX-License-Identifier: GPL-3.0-or-later
"""From request, settings, tables, facts and capabilities to the plan. Pure: what it must know, `questions` asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from droiddeck_session.errors import PlanError
from droiddeck_session.facts import Questions
from droiddeck_session.plan import environment
from droiddeck_session.plan.binds import bind_questions, candidates
from droiddeck_session.plan.chain import ENV, chain_questions, command_line, find_chain
from droiddeck_session.plan.conditions import SETTINGS_NAMES
from droiddeck_session.plan.fast_path import fast_path, placeholders
from droiddeck_session.plan.identity import account_of, identity_of
from droiddeck_session.plan.kernel_identity import named
from droiddeck_session.plan.model import GuestReference, Plan
from droiddeck_session.plan.placing import Placed, place
from droiddeck_session.plan.staged import entries, staged
from droiddeck_session.plan.working_folder import folder_question, working_folder

if TYPE_CHECKING:
    from droiddeck_session.facts import Facts, GuestFacts
    from droiddeck_session.plan.capabilities import Capabilities
    from droiddeck_session.plan.chain import Display
    from droiddeck_session.plan.request import Request
    from droiddeck_session.plan.tables import Tables
    from droiddeck_session.settings import LoadedSettings, Settings

# What else of the guest decides something: the shell of an unknown user.
_ALWAYS_ASKED: Final = frozenset({ENV, "/bin/bash"})


def questions(request: Request, loaded: LoadedSettings, tables: Tables) -> Questions:
    """Return what must be known about the machine and the guest to plan this request.

    Args:
        request: what the user asks for.
        loaded: the settings.
        tables: the rows of binds and variables.
    """
    cwd = folder_question(request.cwd)
    host, guest = bind_questions(request, tables, cwd=cwd)
    programs, in_home = chain_questions()
    return Questions(
        host=host | cwd,
        guest=guest | programs | _ALWAYS_ASKED | cwd,
        in_home=in_home,
        names=_settings_names(loaded.settings),
    )


def build(
    request: Request, loaded: LoadedSettings, tables: Tables, facts: Facts, capabilities: Capabilities
) -> Plan:  # fmt: skip
    """Return the symbolic plan.

    Args:
        request: what the user asks for.
        loaded: the settings with their origins.
        tables: the rows of binds and variables.
        facts: the answers to `questions`.
        capabilities: what the backend can do.

    Raises:
        PlanError: the request cannot be expressed here; names the thing and the fix.
        SettingError: a setting cannot be used; names it.
    """
    settings = loaded.settings
    if not capabilities.rootfs:
        facts = facts.model_copy(update={"guest": None})
    guest = _checked_guest(facts, capabilities)
    identity = identity_of(settings, facts, capabilities)
    account = account_of(guest, identity)
    kernel = named(facts.uname, capabilities, wanted=settings.guest.hostname)
    chain = find_chain(request, settings, guest, account.home)
    offered = entries(facts, identity, nodename=kernel.nodename, programs=chain.staged)
    host_names = facts.host_names(_settings_names(settings))
    placed = Placed()
    if guest is not None:
        found, dropped = candidates(request, tables, facts, capabilities, names=host_names, offered=offered)
        placed = place(found, facts, guest, capabilities, offered)
        placed.dropped[:0] = dropped
    elif request.binds:
        raise _no_binds(request, capabilities)
    shown = {bind.guest for bind in placed.binds}
    names = {"home": account.home, "user": account.user, **chain.names(), **_facts_names(facts)}
    ours = environment.of_rows(
        tables, settings, facts, names=names, host_names=host_names, kind=request.kind, bound=shown
    )  # fmt: skip
    variables = environment.merged(ours, environment.of_user(request, loaded))
    wired = fast_path(
        enabled=settings.fast_path.enabled,
        capabilities=capabilities,
        identity=identity,
        root=guest.root if guest is not None else "/",
        binds=placed.binds,
    )
    return Plan(
        kind=request.kind,
        label=_label(request),
        guest=_reference(guest),
        backend=capabilities.backend,
        identity=identity,
        kernel_release=kernel.kernel_release,
        nodename=kernel.nodename,
        cwd=working_folder(request.cwd, account.home, facts, placed, offered),
        binds=placed.binds,
        dropped=tuple(placed.dropped),
        environment=(*variables, *placeholders(wired)),
        argv=command_line(chain, request, settings, _display(shown), {entry.name for entry in variables}),
        staged=staged(placed.binds, offered, placed.staged),
        mount_points=tuple(placed.mount_points),
        fast_path=wired,
        stand_ins=chain.stand_ins,
    )


def _settings_names(settings: Settings) -> dict[str, str]:
    found = {name: getattr(settings.android, name) for name in SETTINGS_NAMES}
    return {name: path for name, path in found.items() if path is not None}


def _facts_names(facts: Facts) -> dict[str, str]:
    found = {"timezone": facts.timezone, "terminal": facts.terminal, "x_display": facts.x_display}
    return {name: value for name, value in found.items() if value is not None}


def _checked_guest(facts: Facts, capabilities: Capabilities) -> GuestFacts | None:
    if not capabilities.rootfs:
        return None
    if facts.guest is None:
        raise PlanError(
            code="NO_GUEST",
            message=f"backend {capabilities.backend} needs a guest to run",
            hint="make one: droiddeck-session guest create",
        )
    if not facts.guest.paths[ENV].executable:
        raise PlanError(
            code="NOT_A_GUEST",
            message=f"guest {facts.guest.name!r} has no {ENV} that can be run in {facts.guest.root!r}",
            hint="make a guest with `droiddeck-session guest create`, or name the folder that holds a rootfs",
        )
    return facts.guest


def _no_binds(request: Request, capabilities: Capabilities) -> PlanError:
    bind = request.binds[0]
    return PlanError(
        code="NO_ROOTFS",
        message=f"{bind.origin}: bind {bind.host!r} at {bind.guest!r}: backend {capabilities.backend} has no rootfs",
        hint="choose another backend: --backend auto",
    )


def _reference(guest: GuestFacts | None) -> GuestReference:
    if guest is None:
        return GuestReference(name="host", root="/")
    return GuestReference(name=guest.name, root=guest.root, read_only=guest.read_only)


def _display(shown: set[str]) -> Display:
    """Return what gamescope can draw to: what of the caller's the guest sees."""
    if "/run/droiddeck/wayland-0" in shown:
        return "wayland"
    return "sdl" if "/tmp/.X11-unix" in shown else "headless"  # noqa: S108 - where X servers listen


def _label(request: Request) -> str:
    """Return what the session is called: the program's name, or the kind."""
    return (request.argv[0].rpartition("/")[2] if request.kind == "run" else "") or request.kind
