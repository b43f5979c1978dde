# SPDX-License-Identifier: GPL-3.0-or-later
"""The guest's environment: the rows that apply, then the user's own variables, which win."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from droiddeck_session.errors import SettingError
from droiddeck_session.plan.model import Variable
from droiddeck_session.settings import RESERVED_VARIABLES
from droiddeck_session.templates import expand

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from droiddeck_session.facts import Facts
    from droiddeck_session.plan.model import Kind
    from droiddeck_session.plan.request import Request
    from droiddeck_session.plan.tables import Tables
    from droiddeck_session.settings import LoadedSettings, Settings

_TUNABLES: Final = "GLIBC_TUNABLES"


def settings_by_key(settings: Settings) -> dict[str, object]:
    """Return every setting that has a value, as `section.key`."""
    return {
        f"{name}.{key}": value
        for name, section in settings
        if isinstance(section, BaseModel)
        for key, value in section
        if value is not None
    }


def of_rows(
    tables: Tables,
    settings: Settings,
    facts: Facts,
    *,
    names: Mapping[str, str],
    host_names: Mapping[str, str],
    kind: Kind,
    bound: Collection[str],
) -> tuple[Variable, ...]:
    """Return the variables of the rows that apply, in the rows' order; the last row for a name gives its value.

    Args:
        tables: the rows.
        settings: what conditions and values may refer to.
        facts: the machine.
        names: what the names of values stand for, settings aside.
        host_names: what names of host paths stand for.
        kind: of the session.
        bound: guest paths that are bound.

    Raises:
        SettingError: a row sets what only the session sets.
    """
    values = settings_by_key(settings)
    known = {key: _text(value) for key, value in values.items()} | dict(names)
    found: dict[str, Variable] = {}
    for origin, row in tables.variables:
        value = expand(row.value, known)
        if value is None or not row.when.holds(
            facts, host_names, kind, settings=values, names=known, bound=bound
        ):  # fmt: skip
            continue
        _check(origin, row.name)
        found[row.name] = Variable(name=row.name, value=value, origin=origin, reason=row.reason)
    return tuple(found.values())


def of_user(request: Request, loaded: LoadedSettings) -> tuple[Variable, ...]:
    """Return the variables of the settings' section [environment], then those of the command line.

    Raises:
        SettingError: a name is the session's own; names it.
    """
    asked = [(name, value, loaded.origin(f"environment.{name}")) for name, value in loaded.settings.environment.items()]
    asked += [(name, value, "flag --env") for name, value in request.variables]
    for name, _, origin in asked:
        _check(origin, name)
    return tuple(
        Variable(name=name, value=value, origin=origin, reason="asked for by the user")
        for name, value, origin in asked
    )  # fmt: skip


def merged(ours: Iterable[Variable], users: Sequence[Variable]) -> tuple[Variable, ...]:
    """Return both, each name once: the user's after ours and instead of ours of the same name.

    GLIBC_TUNABLES is a list of settings by itself: it is merged by key.

    Raises:
        SettingError: a GLIBC_TUNABLES of the user's is malformed.
    """
    found = {variable.name: variable for variable in ours}
    for variable in users:
        before = found.pop(variable.name, None)
        found[variable.name] = _with_tunables(before, variable) if variable.name == _TUNABLES else variable
    return tuple(found.values())


def merge_tunables(ours: str, users: str) -> str:
    """Return both lists of `name=value` joined by colons, each name once with the user's value.

    Raises:
        ValueError: the user's has an entry that is not `name=value`.
    """
    return ":".join(f"{name}={value}" for name, value in {**_tunables(ours), **_tunables(users)}.items())


def _tunables(text: str) -> dict[str, str]:
    found = {}
    for number, entry in enumerate(text.split(":") if text else (), 1):
        name, equals, value = entry.partition("=")
        if not name or not equals or "=" in value:
            raise ValueError(f"entry {number} is not NAME=VALUE")
        found[name] = value
    return found


def _with_tunables(before: Variable | None, variable: Variable) -> Variable:
    try:
        value = merge_tunables("" if before is None else before.value, variable.value)
    except ValueError as error:
        raise SettingError(
            code="BAD_TUNABLES",
            message=f"{variable.origin}: {_TUNABLES}: {error}",
            hint="write it as NAME=VALUE[:NAME=VALUE]..., as ld.so(8) has it",
        ) from None
    if before is None:
        return variable.model_copy(update={"value": value})
    origin = f"{variable.origin}, over {before.origin}"
    return variable.model_copy(update={"value": value, "origin": origin, "reason": before.reason})


def _check(origin: str, name: str) -> None:
    if name in RESERVED_VARIABLES:
        raise SettingError(
            code="RESERVED_VARIABLE",
            message=f"{origin}: {name} is set by the session itself",
            hint="leave it out",
        )


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
