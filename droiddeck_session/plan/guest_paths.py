# SPDX-License-Identifier: GPL-3.0-or-later
"""Guest paths as texts: one spelling for each, what lies above one, and how one is moved below another."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_Item = TypeVar("_Item")


def normalise(path: str) -> str:
    """Return the one spelling of an absolute path: no `//`, `.`, `..` or slash at its end.

    `..` is taken by name, before any link is followed; at the root it stays.

    Raises:
        ValueError: the path is not absolute, or holds a NUL.
    """
    if not path.startswith("/"):
        raise ValueError("is not absolute")
    if "\0" in path:
        raise ValueError("holds a NUL, which no path can")
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in {"", "."}:
            parts.append(part)
    return "/" + "/".join(parts)


def mountable(path: str) -> str:
    """Return `normalise(path)` for a path that something can be bound at.

    Raises:
        ValueError: the path is not absolute, holds a NUL, or is the root itself.
    """
    found = normalise(path)
    if found == "/":
        raise ValueError("is the root itself; choose another guest for that")
    return found


def ancestors(path: str) -> Iterator[str]:
    """Yield what lies above a normalised path, the nearest first, without the root."""
    end = path.rfind("/")
    while end > 0:
        path = path[:end]
        yield path
        end = path.rfind("/")


def below(path: str, top: str) -> str | None:
    """Return the rest of a path below `top`, led by a slash; empty for `top` itself, None for what is not below."""
    if path == top:
        return ""
    prefix = top.rstrip("/")
    return path[len(prefix) :] if path.startswith(f"{prefix}/") else None


def in_mount_order(items: Iterable[_Item], path_of: Callable[[_Item], str]) -> list[_Item]:
    """Return the last item of each path, what lies above before what lies below; otherwise their order stays.

    Args:
        items: what is mounted, in the order in which it was asked for.
        path_of: the normalised path of an item.
    """
    last: dict[str, _Item] = {}
    for item in items:
        last.pop(path_of(item), None)
        last[path_of(item)] = item
    ordered: dict[str, _Item] = {}
    for guest in last:
        for path in (*reversed([*ancestors(guest)]), guest):
            if path in last:
                ordered.setdefault(path, last[path])
    return list(ordered.values())
