# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests' model of what binds mean: guest path to host path by the longest prefix, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from droiddeck_session.plan.guest_paths import ancestors, below, normalise

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from droiddeck_session.plan.model import Bind


def covering(binds: Iterable[Bind], guest: str) -> Bind | None:
    """Return the bind that a normalised guest path lies in: the one with the longest prefix, of equals the last."""
    by_guest = {bind.guest: bind for bind in binds}
    return next((by_guest[path] for path in (guest, *ancestors(guest)) if path in by_guest), None)


def host_of(binds: Sequence[Bind], guest: str, *, root: str) -> str:
    """Return the host path of a guest path, links aside.

    Args:
        binds: the plan's.
        guest: absolute guest path.
        root: host path of the rootfs.
    """
    path = normalise(guest)
    bind = covering(binds, path)
    if bind is None:
        return root.rstrip("/") + path if path != "/" else root
    return _joined(bind.host, below(path, bind.guest) or "")


def guest_of(binds: Sequence[Bind], host: str, *, root: str) -> str | None:
    """Return a guest path that shows a host path, or None if none does: the inverse of `host_of`.

    Of several, that of the bind with the longest host path, of equals the last; a place that another bind covers shows
    nothing.
    """
    path = normalise(host)
    tops = [(bind.host, bind.guest) for bind in reversed(binds)]
    tops = [*sorted(tops, key=lambda top: len(top[0]), reverse=True), (root, "/")]
    for top, guest in tops:
        rest = below(path, top)
        if rest is None:
            continue
        found = _joined(guest, rest)
        if host_of(binds, found, root=root) == path:
            return found
    return None


def _joined(top: str, rest: str) -> str:
    return top.rstrip("/") + rest or "/"
