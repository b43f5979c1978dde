# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the backends: the native programs of their probes, each one's probe, and which one sessions take."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

from droiddeck_session import facts, paths, processes
from droiddeck_session.backends import registry
from droiddeck_session.backends.confinement import EVERYTHING
from droiddeck_session.backends.probing import PROBE
from droiddeck_session.diagnostics.finding import Finding, Surroundings
from droiddeck_session.plan.capabilities import Capabilities
from droiddeck_session.session.prepare import choose_backend

if TYPE_CHECKING:
    from collections.abc import Iterator

# A probe starts a dozen programs, each with a limit of its own.
PROBE_LIMIT: Final = 90.0
# What a user may miss, in the words of the man page.
_ABILITIES: Final = {
    "main_status": "exact exit status",
    "signal_status": "death by signal told",
    "read_only_binds": "read-only binds",
    "colon_in_binds": "colons in bind paths",
    "nodename": "host name",
    "change_identity": "other user ids",
}


def native_programs(_: Surroundings) -> Iterator[Finding]:
    """Are the native programs built?"""
    path = paths.native_file(PROBE, facts.uname().machine)
    built = path.is_file()
    yield Finding(
        id="native",
        status="ok" if built else "fail",
        evidence=f"{path} is built" if built else f"{path} is not built; no backend can be shown to confine without it",
        fix="" if built else "make (needs gcc and libc6-dev), or install a wheel for this machine",
    )


def backends(seen: Surroundings) -> Iterator[Finding]:
    """What does each backend's probe show, and which one do the settings take?"""
    for name in registry.names():
        yield _backend(name, seen)
    _, chosen = choose_backend(seen.environ, seen.loaded, seen.directories)
    wanted = seen.loaded.settings.backend.name
    yield Finding(id="backend", status="ok", evidence=f"backend.name {wanted!r} takes {chosen.backend}")


def _backend(name: str, seen: Surroundings) -> Finding:
    argv = [sys.executable, "-m", __package__ + ".backend_trial", name]
    done = processes.run(argv, time_limit=PROBE_LIMIT, env=seen.environ)
    identity = f"backend.{name}"
    if done.returncode != 0:
        error = processes.failed(done, hint="the backend's own fault; the others are not touched by it")
        return Finding(id=identity, status="fail", evidence=f"the probe broke: {error.message}", fix=error.hint)
    return finding(identity, Capabilities.model_validate(json.loads(done.stdout)))


def finding(identity: str, shown: Capabilities) -> Finding:
    """Return what a probe's answer means for the user.

    Args:
        identity: id of the finding.
        shown: what the probe showed.
    """
    if not shown.available:
        return Finding(id=identity, status="warn", evidence=shown.why_not, fix=shown.fix)
    program = " ".join(part for part in (shown.program, shown.version) if part)
    led = f"{program}: " if program else ""
    if not shown.rootfs:
        return Finding(
            id=identity, status="skip", evidence=f"{led}runs on the host itself, for tests; auto never takes it"
        )
    if EVERYTHING in shown.leaks:
        fix = "use another backend, or another build of this one"
        return Finding(
            id=identity, status="warn", evidence=f"{led}runs the guest on the HOST's root; never used", fix=fix
        )
    lacking = [text for ability, text in _ABILITIES.items() if not getattr(shown, ability)]
    lacks = f"; has not: {', '.join(lacking)}" if lacking else ""
    if not shown.confines:
        leaks = ", ".join(shown.leaks) or "the probe did not finish"
        return Finding(
            id=identity,
            status="warn",
            evidence=f"{led}does not confine: {leaks}{lacks}",
            fix="auto does not take it; named with --backend it is used, with a warning",
        )
    return Finding(id=identity, status="ok", evidence=f"{led}confines{lacks}")
