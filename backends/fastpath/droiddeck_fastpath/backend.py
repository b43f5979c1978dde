# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own tracer: built with the project, so its options are known; what works on this machine is probed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from droiddeck_session import processes
from droiddeck_session.backends import proot_style
from droiddeck_session.backends.interface import HOST_PATH, HostCommand, ProbeRequest
from droiddeck_session.backends.probing import examine, unavailable
from droiddeck_session.backends.programs import fingerprint
from droiddeck_session.backends.ptrace_check import PTRACE_FIX, ptrace_permitted
from droiddeck_session.paths import native_file
from droiddeck_session.plan.capabilities import Capabilities

if TYPE_CHECKING:
    from pathlib import Path

    from droiddeck_session.plan.model import Plan

TRACER: Final = "droiddeck-tracer"
LOADER: Final = "droiddeck-loader"
OPTIONS: Final = ("0", "b", "i", "k", "kernel-release", "kill-on-exit", "r", "w")
_FIX: Final = "run `make` in the checkout (it needs a C compiler), or install a wheel for this machine"


class FastpathBackend:
    """Drives droiddeck-tracer."""

    name: ClassVar[str] = "fastpath"

    def probe(self, request: ProbeRequest) -> Capabilities:
        """Run the tracer on a throw-away rootfs and see what works here."""
        tracer, loader = _native(request)
        provisional = Capabilities(
            backend=self.name,
            available=True,
            program=str(tracer),
            options=OPTIONS,
            host_environment=((proot_style.LOADER, str(loader)),),
            kernel_identity="full",
            change_identity=True,
        )
        for file in (tracer, loader):
            if not file.is_file():
                return unavailable(provisional, f"{file} is not built", _FIX)
        permitted, why_not = ptrace_permitted(request.machine)
        if not permitted:
            return unavailable(provisional, why_not, PTRACE_FIX)
        try:
            said = processes.run([str(tracer), "--version"], env={"PATH": HOST_PATH}, check=True)
        except processes.ProcessError as error:
            return unavailable(provisional, error.message, _FIX)
        # The last word of one line: `droiddeck-tracer 1.0`.
        version = said.stdout.decode(errors="replace").split()[-1:]
        return examine(
            request,
            command=self.command,
            provisional=provisional.model_copy(update={"version": "".join(version)[:40]}),
            fix=_FIX,
        )

    def cache_key(self, request: ProbeRequest) -> str:
        """Return what changes when the tracer or its loader is built anew."""
        return " ".join(fingerprint(str(file)) for file in _native(request))

    def command(self, plan: Plan, capabilities: Capabilities) -> HostCommand:
        """Return the tracer's command line, which is proot's as far as plans need it.

        Raises:
            BackendError: the plan asks for something that the probe did not show.
        """
        return proot_style.host_command(plan, capabilities)


def _native(request: ProbeRequest) -> tuple[Path, Path]:
    return native_file(TRACER, request.machine), native_file(LOADER, request.machine)
