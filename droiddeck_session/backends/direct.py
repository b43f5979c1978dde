# SPDX-License-Identifier: GPL-3.0-or-later
"""No tracer and no rootfs: the plan's command line as it is, on the host. For tests and comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from droiddeck_session.backends.interface import HOST_PATH, HostCommand
from droiddeck_session.backends.probing import examine
from droiddeck_session.backends.refusals import refuse_what_it_cannot
from droiddeck_session.plan.capabilities import Capabilities

if TYPE_CHECKING:
    from droiddeck_session.backends.interface import ProbeRequest
    from droiddeck_session.plan.model import Plan


class DirectBackend:
    """Runs a plan without confining it."""

    name: ClassVar[str] = "direct"

    def probe(self, request: ProbeRequest) -> Capabilities:
        """Find out how statuses and signals pass; that it does not confine is known."""
        return examine(
            request,
            command=self.command,
            provisional=Capabilities(backend=self.name, available=True, rootfs=False),
            fix="install coreutils, which brings /usr/bin/env",
        )

    def cache_key(self, request: ProbeRequest) -> str:  # noqa: ARG002 - the interface's signature
        """Return nothing: there is no program that could change."""
        return ""

    def command(self, plan: Plan, capabilities: Capabilities) -> HostCommand:
        """Return the guest's command line itself.

        Raises:
            BackendError: the plan has binds, or asks for other ids or another host name.
        """
        refuse_what_it_cannot(plan, capabilities)
        return HostCommand(argv=plan.command_line(), env={"PATH": HOST_PATH}, cwd=plan.cwd)
