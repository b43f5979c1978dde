# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel namespaces by bubblewrap: what a desktop user would take.

No pid namespace and no `--die-with-parent`: the supervisor is the subreaper of the tree, so when a terminal's Ctrl-C
ends the wrapper, it adopts the program and reads its real status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from droiddeck_session import processes, root_mount
from droiddeck_session.backends.interface import HOST_PATH, HostCommand
from droiddeck_session.backends.probing import examine, unavailable
from droiddeck_session.backends.programs import find_program, fingerprint
from droiddeck_session.backends.refusals import refuse_what_it_cannot
from droiddeck_session.errors import BackendError
from droiddeck_session.plan.capabilities import Capabilities

if TYPE_CHECKING:
    from droiddeck_session.backends.interface import ProbeRequest
    from droiddeck_session.plan.model import Plan

# bubblewrap.c: MAX_ARGS; the program's own count as well, and so do the words of `report_option`.
_MOST_ARGUMENTS: Final = 9000
_REPORT_WORDS: Final = 2
_FIX: Final = (
    "install bubblewrap; where it is installed, user namespaces may be off: see sysctl user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns"
)


class BwrapBackend:
    """Drives the bwrap program."""

    name: ClassVar[str] = "bwrap"

    def probe(self, request: ProbeRequest) -> Capabilities:
        """Run bwrap on a throw-away rootfs and see what it can do for this user."""
        program, why_not = find_program(self.name, request)
        provisional = Capabilities(
            backend=self.name,
            available=True,
            program=program,
            nodename=True,
            change_identity=True,
            read_only_binds=True,
            colon_in_binds=True,
        )
        if not program:
            return unavailable(provisional, why_not, _FIX)
        try:
            version = processes.run([program, "--version"]).stdout.decode(errors="replace").strip()
        except processes.ProcessError as error:
            return unavailable(provisional, error.message, _FIX)
        provisional = provisional.model_copy(update={"version": version.removeprefix("bubblewrap ")[:40]})
        return examine(request, command=self.command, provisional=provisional, fix=root_mount.fix(_FIX))

    def cache_key(self, request: ProbeRequest) -> str:
        """Return the program's path, size and times."""
        return fingerprint(find_program(self.name, request)[0])

    def command(self, plan: Plan, capabilities: Capabilities) -> HostCommand:
        """Return bwrap's command line: rootfs, binds in the plan's order, namespaces, the guest's command line.

        Raises:
            BackendError: the plan asks for something that the probe did not show, or has too many binds.
        """
        refuse_what_it_cannot(plan, capabilities)
        argv = [capabilities.program, "--ro-bind" if plan.guest.read_only else "--bind", plan.guest.root, "/"]
        for entry in plan.binds:
            argv += ["--ro-bind" if entry.read_only else "--dev-bind", entry.host, entry.guest]
        if plan.nodename is not None:
            argv += ["--unshare-uts", "--hostname", plan.nodename]
        if plan.identity.emulated:
            argv += ["--unshare-user", "--uid", str(plan.identity.uid), "--gid", str(plan.identity.gid)]
        argv += ["--chdir", plan.cwd, "--", *plan.command_line()]
        if len(argv[1:]) + _REPORT_WORDS > _MOST_ARGUMENTS:
            raise BackendError(
                code="TOO_MANY_BINDS",
                message=f"bwrap takes at most {_MOST_ARGUMENTS} arguments, and {len(plan.binds)} binds need more",
                hint="bind a folder above them, or use another backend: --backend chroot",
            )
        return HostCommand(
            argv=tuple(argv), env={"PATH": HOST_PATH}, cwd=plan.guest.root, report_option="--json-status-fd"
        )
