# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of `doctor`, in one table, and how they are run: a check that breaks is a finding, never a traceback."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from droiddeck_session import paths, settings
from droiddeck_session.diagnostics import backend_checks, guest_checks, machine_checks
from droiddeck_session.diagnostics.finding import Check, Finding, Surroundings
from droiddeck_session.errors import DroiddeckError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# In the order of the report: what the others build on comes first.
CHECKS: Final[Mapping[str, Check]] = {
    "python": machine_checks.python,
    "settings": machine_checks.setting_files,
    "folder": machine_checks.folders,
    "tool": machine_checks.tools,
    "subordinate-ids": machine_checks.subordinate_ids,
    "traced": machine_checks.traced,
    "ptrace": machine_checks.ptrace,
    "seccomp": machine_checks.seccomp,
    "user-namespaces": machine_checks.user_namespaces,
    "native": backend_checks.native_programs,
    "backend": backend_checks.backends,
    "guest": guest_checks.default_guest,
    "bind": guest_checks.binds_of_the_user,
}


def surroundings(environ: Mapping[str, str]) -> Surroundings:
    """Return what the checks may look at; settings that cannot be used give way to the defaults.

    Args:
        environ: the caller's environment.
    """
    directories = paths.directories(environ)
    error = None
    try:
        loaded = settings.load(directories=directories, environ=environ, flags={})
    except DroiddeckError as refusal:
        loaded, error = settings.LoadedSettings(settings=settings.Settings(), origins={}), refusal
    return Surroundings(environ=environ, directories=directories, loaded=loaded, setting_error=error, uid=os.geteuid())


def examine(seen: Surroundings, checks: Mapping[str, Check] = CHECKS) -> Iterator[Finding]:
    """Yield the findings of all checks, each as soon as it is known.

    Args:
        seen: what the checks may look at.
        checks: by name; a check that breaks is told under it.
    """
    for name, check in checks.items():
        try:
            yield from check(seen)
        except DroiddeckError as error:
            yield Finding(id=name, status="fail", evidence=error.message, fix=error.hint)
        except Exception as error:  # noqa: BLE001 - one broken check must not hide what the others found
            said = f"the check itself broke: {type(error).__name__}: {error}"
            yield Finding(id=name, status="fail", evidence=said, fix="this is a fault of droiddeck-session; report it")


def healthy(findings: Iterable[Finding]) -> bool:
    """Return whether nothing failed; what only some sessions need may be missing."""
    return all(finding.status != "fail" for finding in findings)
