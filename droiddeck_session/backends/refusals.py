# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan may ask of a backend, and the refusal by name where the backend's probe did not show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from droiddeck_session.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from droiddeck_session.plan.capabilities import Capabilities
    from droiddeck_session.plan.model import Plan


def refuse_what_it_cannot(plan: Plan, capabilities: Capabilities) -> None:
    """Check a plan against what the backend can do here.

    Raises:
        BackendError: the plan asks for something that is off; names the first such thing.
    """
    for thing, hint in _unmet(plan, capabilities):
        raise BackendError(
            code="BACKEND_CANNOT", message=f"the {capabilities.backend} backend cannot {thing} here", hint=hint
        )


def _unmet(plan: Plan, capabilities: Capabilities) -> Iterator[tuple[str, str]]:
    other = "use another backend (droiddeck-session doctor shows what each can do)"
    if plan.binds and not capabilities.rootfs:
        yield f"bind {plan.binds[0].host}", "leave the bind out, or use a backend with a rootfs"
    for bind in plan.binds:
        if bind.read_only and not capabilities.read_only_binds:
            yield f"refuse writes through a bind (read-only bind of {bind.host} at {bind.guest})", other
        if ":" in bind.host + bind.guest and not capabilities.colon_in_binds:
            yield f"bind a path that holds a colon ({bind.host} at {bind.guest})", other
    if plan.identity.emulated and not capabilities.change_identity:
        ids = f"{plan.identity.uid}:{plan.identity.gid}"
        yield f"show the ids {ids}", 'set guest.identity = "caller", or ' + other
    if plan.nodename is not None and not capabilities.nodename:
        yield f"set the host name {plan.nodename}", other
    if plan.kernel_release is not None and capabilities.kernel_identity == "none":
        yield "set the kernel's identity", other
