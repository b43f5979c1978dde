# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's truth: a private mount namespace with exactly the plan's binds, then chroot(2), also without root.

The work is done by `chroot_enter.py`, a program of the standard library alone, which in the end is replaced by the
guest's first process: status, signals and process id are the program's own.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from droiddeck_session import root_mount
from droiddeck_session.backends.interface import HOST_PATH, HostCommand
from droiddeck_session.backends.probing import examine
from droiddeck_session.backends.programs import fingerprint
from droiddeck_session.backends.refusals import refuse_what_it_cannot
from droiddeck_session.plan.capabilities import Capabilities

if TYPE_CHECKING:
    from droiddeck_session.backends.interface import ProbeRequest
    from droiddeck_session.plan.model import Plan

ENTER: Final = str(Path(__file__).with_name("chroot_enter.py"))
_FIX: Final = (
    "run it as root, or allow user namespaces: see sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone "
    "and kernel.apparmor_restrict_unprivileged_userns; Linux 5.6 is the oldest kernel that it works on"
)


class ChrootBackend:
    """Enters the rootfs by chroot(2)."""

    name: ClassVar[str] = "chroot"

    def probe(self, request: ProbeRequest) -> Capabilities:
        """Enter a throw-away rootfs and see what works for this user."""
        provisional = Capabilities(
            backend=self.name,
            available=True,
            program=ENTER,
            nodename=True,
            change_identity=True,
            read_only_binds=True,
            colon_in_binds=True,
        )
        return examine(request, command=self.command, provisional=provisional, fix=root_mount.fix(_FIX))

    def cache_key(self, request: ProbeRequest) -> str:  # noqa: ARG002 - the interface's signature
        """Return what changes when the entering program or its interpreter is replaced."""
        return f"{fingerprint(ENTER)} {fingerprint(sys.executable)}"

    def command(self, plan: Plan, capabilities: Capabilities) -> HostCommand:
        """Return the command line of the entering program.

        Raises:
            BackendError: the plan asks for something that the probe did not show.
        """
        refuse_what_it_cannot(plan, capabilities)
        argv = [sys.executable, "-I", "-S", capabilities.program]
        argv += ["--ro-root" if plan.guest.read_only else "--root", plan.guest.root]
        for entry in plan.binds:
            argv += ["--ro-bind" if entry.read_only else "--bind", entry.host, entry.guest]
        if plan.nodename is not None:
            argv += ["--hostname", plan.nodename]
        if plan.identity.emulated:
            argv += ["--uid", str(plan.identity.uid), "--gid", str(plan.identity.gid)]
        argv += ["--cwd", plan.cwd, "--", *plan.command_line()]
        return HostCommand(argv=tuple(argv), env={"PATH": HOST_PATH}, cwd=plan.guest.root)
