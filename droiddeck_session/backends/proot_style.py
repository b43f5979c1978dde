# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line and environment that proot and our own tracer have in common: built once, from a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from droiddeck_session.backends.interface import HOST_PATH, HostCommand
from droiddeck_session.backends.refusals import refuse_what_it_cannot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from droiddeck_session.plan.capabilities import Capabilities
    from droiddeck_session.plan.model import Identity, Plan

# The variable that names the program which a tracer starts in every guest process.
LOADER: Final = "PROOT_LOADER"
_ROOT: Final = 0
_RELEASE_FIELD: Final = 3  # \sysname\nodename\release\...: the text before the first backslash is empty


def host_command(plan: Plan, capabilities: Capabilities) -> HostCommand:
    """Return the command line: options in the fixed order, binds in the plan's, the guest's command line. Pure.

    Args:
        plan: a concrete plan.
        capabilities: what the probe showed; an option that is not among them is left out.

    Raises:
        BackendError: the plan asks for something that the probe did not show.
    """
    refuse_what_it_cannot(plan, capabilities)
    argv = [capabilities.program]
    if "kill-on-exit" in capabilities.options:
        argv.append("--kill-on-exit")
    if plan.kernel_release is not None:
        full = capabilities.kernel_identity == "full"
        argv.append(f"--kernel-release={plan.kernel_release if full else _release(plan.kernel_release)}")
    argv += _identity_option(plan.identity, capabilities)
    argv += ["-r", plan.guest.root, "-w", plan.cwd]
    for spec in plan.bind_specs():
        argv += ["-b", spec]
    argv += plan.command_line()
    return HostCommand(argv=tuple(argv), env=dict(_environment(plan, capabilities)), cwd=plan.guest.root)


def _release(identity: str) -> str:
    """Return the release alone of a seven-field kernel identity; a bare release is itself."""
    fields = identity.split("\\")
    return fields[_RELEASE_FIELD] if len(fields) > _RELEASE_FIELD else identity


def _identity_option(identity: Identity, capabilities: Capabilities) -> tuple[str, ...]:
    """Return the option that answers set*id: for emulated ids, and for a user's own, which Android forbids to set.

    Real root needs none: its calls succeed, and emulated ids would hide real owners.
    """
    if not capabilities.change_identity or (identity.uid == _ROOT and not identity.emulated):
        return ()
    if (identity.uid, identity.gid) == (_ROOT, _ROOT) and "0" in capabilities.options:
        return ("-0",)
    return ("-i", f"{identity.uid}:{identity.gid}")


def _environment(plan: Plan, capabilities: Capabilities) -> Iterator[tuple[str, str]]:
    yield "PATH", HOST_PATH
    yield "PROOT_TMP_DIR", f"{plan.session}/tracer"
    yield from capabilities.host_environment
    if plan.fast_path.enabled and capabilities.fast_path and plan.fast_path.key is not None:
        yield "PROOT_FASTPATH", plan.fast_path.key
