# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user asks for: the kind of session, its program, and what the command line adds to the tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from droiddeck_session.errors import UsageError
from droiddeck_session.plan.guest_paths import mountable
from droiddeck_session.plan.model import Frozen, Kind, OsText

if TYPE_CHECKING:
    from collections.abc import Iterable

# What both env(1) and every shell take as a name.
VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


_FORM: Final = "write HOST[:GUEST], both absolute, GUEST below the root"
_READ_ONLY: Final = "for a read-only bind write --ro-bind HOST[:GUEST]"
_COLON: Final = "a path that holds a colon can only be bound by a row of binds.toml"


class RequestedBind(Frozen):
    """A bind of the command line: without its source there is no session."""

    host: OsText
    guest: OsText
    read_only: bool
    origin: str


class Request(Frozen):
    """What one of the verbs `run`, `steam`, `desktop` was asked for.

    Attributes:
        kind: the verb.
        argv: program and arguments, for `run`.
        url: a steam:// URL, for `steam`.
        binds: the command line's, in its order.
        variables: the command line's, in its order.
        cwd: guest path of the working directory, or None for the home.
    """

    kind: Kind
    argv: tuple[OsText, ...] = ()
    url: OsText | None = None
    binds: tuple[RequestedBind, ...] = ()
    variables: tuple[tuple[OsText, OsText], ...] = ()
    cwd: OsText | None = None


def from_words(
    kind: Kind,
    *,
    argv: Iterable[str] = (),
    url: str | None = None,
    binds: Iterable[str] = (),
    ro_binds: Iterable[str] = (),
    variables: Iterable[str] = (),
    cwd: str | None = None,
) -> Request:
    """Return the request that a verb's options and arguments make.

    Raises:
        UsageError: a bind or variable has no such form.
    """
    asked = [parse_bind(text, read_only=False, origin="flag --bind") for text in binds]
    asked += [parse_bind(text, read_only=True, origin="flag --ro-bind") for text in ro_binds]
    return Request(
        kind=kind,
        argv=tuple(argv),
        url=url,
        binds=tuple(asked),
        variables=tuple(parse_variable(text) for text in variables),
        cwd=cwd,
    )


def parse_bind(text: str, *, read_only: bool, origin: str) -> RequestedBind:
    """Return the bind that `HOST[:GUEST]` means.

    Args:
        text: one value of the flag.
        read_only: whether the guest must not write through it.
        origin: the flag, as `flag --bind`.

    Raises:
        UsageError: it has more than one colon, or a path that cannot be meant.
    """
    host, colon, guest = text.partition(":")
    if ":" in guest:
        raise _bad_bind(origin, text, "has more than one colon", _READ_ONLY if text.endswith(":ro") else _COLON)
    for name, path in (("host", host), ("guest", guest if colon else host)):
        try:
            mountable(path) if name == "guest" else _check_host(path)
        except ValueError as error:
            fix = _READ_ONLY if guest == "ro" else _FORM
            raise _bad_bind(origin, text, f"the {name} path {path!r} {error}", fix) from None
    return RequestedBind(
        host=host, guest=mountable(guest if colon else host), read_only=read_only, origin=origin
    )  # fmt: skip


def parse_variable(text: str) -> tuple[str, str]:
    """Return name and value of `NAME=VALUE`.

    Raises:
        UsageError: it has no `=`, or no such name can be set.
    """
    name, equals, value = text.partition("=")
    if not equals or not VARIABLE_NAME.fullmatch(name) or "\0" in value:
        raise UsageError(
            code="VARIABLE_SYNTAX",
            message=f"flag --env: {name!r} is not followed by a value that can be set"
            if VARIABLE_NAME.fullmatch(name)
            else f"flag --env: {name!r} is not the name of a variable",
            hint="write NAME=VALUE, with a name of letters, digits and underscores that no digit leads",
        )
    return name, value


def _check_host(path: str) -> None:
    if not path.startswith("/"):
        raise ValueError("is not absolute")
    if "\0" in path:
        raise ValueError("holds a NUL, which no path can")


def _bad_bind(origin: str, text: str, why: str, fix: str) -> UsageError:
    return UsageError(
        code="BIND_SYNTAX",
        message=f"{origin} {text!r}: {why}",
        hint=fix,
    )
