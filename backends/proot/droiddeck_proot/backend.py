# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives any proot (Debian's, Termux's, a patched one): its options are read, its behaviour is probed.

A proot that runs the guest on the host's root, or dies, gets a second trial without its seccomp acceleration, which
is what such builds usually fail at; the variable that this takes is then part of the answer.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from droiddeck_proot.options import known_options, version
from droiddeck_session import processes
from droiddeck_session.backends import proot_style
from droiddeck_session.backends.confinement import EVERYTHING
from droiddeck_session.backends.interface import HOST_PATH, HostCommand, ProbeRequest
from droiddeck_session.backends.probing import examine, unavailable
from droiddeck_session.backends.programs import find_program, fingerprint
from droiddeck_session.backends.ptrace_check import PTRACE_FIX, ptrace_permitted
from droiddeck_session.plan.capabilities import Capabilities

if TYPE_CHECKING:
    from droiddeck_session.plan.model import Plan

_FIX: Final = "install another proot (apt install proot), or name one in the setting backend.proot"
# Its loader, unpacked: Debian's 5.1.0 knows no PROOT_TMP_DIR and minds no TMPDIR.
_LEAVINGS: Final = "/tmp/prooted-{pid}-??????"  # noqa: S108 - the program's choice
_NEEDED: Final = ("r", "b", "w")

# A proot that was built with its loader beside it instead of inside: the end of the program's path, the loader's name.
_LOADERS: Final = {"/libproot.so": "libproot-loader.so", "/opt/android-host/proot": "loader"}


class ProotBackend:
    """Drives an installed proot."""

    name: ClassVar[str] = "proot"

    def probe(self, request: ProbeRequest) -> Capabilities:
        """Read the program's options and run it on a throw-away rootfs."""
        program, why_not = find_program(self.name, request)
        nothing = Capabilities(backend=self.name, available=False, program=program)
        if not program:
            return unavailable(nothing, why_not, _FIX)
        permitted, why_not = ptrace_permitted(request.machine)
        if not permitted:
            return unavailable(nothing, why_not, PTRACE_FIX)
        provisional = _introduce(program, request)
        if provisional.why_not:
            return unavailable(provisional, provisional.why_not, _FIX)
        plain = self._try(provisional, request, "plain")
        if plain.available and EVERYTHING not in plain.leaks:
            return plain
        slow = {"host_environment": (*provisional.host_environment, ("PROOT_NO_SECCOMP", "1"))}
        second = self._try(provisional.model_copy(update=slow), request, "no-seccomp")
        return second if second.available and EVERYTHING not in second.leaks else plain

    def cache_key(self, request: ProbeRequest) -> str:
        """Return the program's path, size and times, and a loader that the caller names."""
        return f"{fingerprint(find_program(self.name, request)[0])} {request.environ.get(proot_style.LOADER, '')}"

    def command(self, plan: Plan, capabilities: Capabilities) -> HostCommand:
        """Return proot's command line, with the options that this one knows.

        Raises:
            BackendError: the plan asks for something that the probe did not show.
        """
        return dataclasses.replace(proot_style.host_command(plan, capabilities), leavings=_LEAVINGS)

    def _try(self, provisional: Capabilities, request: ProbeRequest, name: str) -> Capabilities:
        scratch = Path(request.scratch) / name
        scratch.mkdir()
        own = ProbeRequest(
            environ=request.environ, programs=request.programs, scratch=str(scratch), machine=request.machine
        )
        return examine(own, command=self.command, provisional=provisional, fix=_FIX)


def _introduce(program: str, request: ProbeRequest) -> Capabilities:
    """Return what the program says about itself, and with it what is worth trying; `why_not` where it says nothing."""
    loader = _loader(program, request)
    environment = ((proot_style.LOADER, loader),) if loader else ()
    provisional = Capabilities(backend=ProotBackend.name, available=False, program=program)
    try:
        completed = processes.run([program, "--help"], env={"PATH": HOST_PATH, **dict(environment)})
    except processes.ProcessError as error:
        return provisional.model_copy(update={"why_not": error.message})
    text = (completed.stdout + completed.stderr).decode(errors="replace")
    options = known_options(text)
    missing = [f"-{name}" for name in _NEEDED if name not in options]
    if completed.timed_out or missing:
        fault = f"its --help does not list {', '.join(missing)}" if missing else "its --help does not end"
        return provisional.model_copy(update={"why_not": f"{program} is no proot that can be used: {fault}"})
    return provisional.model_copy(
        update={
            "available": True,
            "version": version(text)[:40],
            "options": options,
            "host_environment": environment,
            "kernel_identity": "full" if "kernel-release" in options else "none",
            "nodename": False,
            "change_identity": "i" in options,
        }
    )


def _loader(program: str, request: ProbeRequest) -> str:
    if named := request.environ.get(proot_style.LOADER):
        return named
    for end, name in _LOADERS.items():
        beside = Path(program).with_name(name)
        if program.endswith(end) and beside.is_file():
            return str(beside)
    return ""
