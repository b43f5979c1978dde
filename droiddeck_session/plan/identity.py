# SPDX-License-Identifier: GPL-3.0-or-later
"""Who one is in the guest: ids, login name and home."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from droiddeck_session.errors import PlanError
from droiddeck_session.facts import DEFAULT_HOME
from droiddeck_session.plan.model import Identity

if TYPE_CHECKING:
    from droiddeck_session.facts import Facts, GuestFacts
    from droiddeck_session.plan.capabilities import Capabilities
    from droiddeck_session.settings import Settings


class Account(NamedTuple):
    """Login name and home of a user of the guest."""

    user: str
    home: str


def identity_of(settings: Settings, facts: Facts, capabilities: Capabilities) -> Identity:
    """Return the ids that the guest's processes have.

    Raises:
        PlanError: they are not the caller's, and the backend can show no others.
    """
    if settings.guest.identity == "caller":
        return Identity(uid=facts.uid, gid=facts.gid)
    identity = Identity(uid=0, gid=0, emulated=(facts.uid, facts.gid) != (0, 0))
    if identity.emulated and not capabilities.change_identity:
        raise PlanError(
            code="IDENTITY_NOT_POSSIBLE",
            message=f"guest.identity: backend {capabilities.backend} cannot show uid {facts.uid} as root",
            hint="set guest.identity to caller, or use a backend that can",
        )
    return identity


def account_of(guest: GuestFacts | None, identity: Identity) -> Account:
    """Return who has this uid in the guest; an unknown one is root by name, with root's home."""
    known = guest.users if guest is not None else {}
    return Account(*known.get(identity.uid, ("root", DEFAULT_HOME)))
