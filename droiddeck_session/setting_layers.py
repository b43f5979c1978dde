# SPDX-License-Identifier: GPL-3.0-or-later
"""The layers of the settings: what one file, the environment or a command line says, each value with its origin.

A layer is checked by itself, because only there is known which line or variable is at fault. Merging is then a matter
of keys: the later layer's value replaces the earlier one's, key by key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from droiddeck_session.errors import SettingError
from droiddeck_session.layers import TableFile, fault, parse, read_file, unknown_key, validation_errors
from droiddeck_session.setting_keys import OPEN_SECTION, VARIABLE_PREFIX, Key, keys_of, variable_of_guest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_EXPLAIN: Final = "droiddeck-session settings explain {key}"


@dataclass(frozen=True)
class Sourced:
    """A value and who set it. The value is not shown in the object's own text: it may be a secret of the guest."""

    value: object = field(repr=False)
    origin: str


@dataclass(frozen=True)
class Layer:
    """What one source sets, by dotted key, and what is wrong with it; a source with a fault sets nothing by it."""

    values: Mapping[str, Sourced]
    faults: tuple[SettingError, ...] = ()


def merge(*layers: Mapping[str, Sourced]) -> dict[str, Sourced]:
    """Return the values of all layers; of a key that several set, the last one's."""
    return {key: value for layer in layers for key, value in layer.items()}


def of_path(path: Path, origin: str, model: type[BaseModel], *, required: bool = False) -> Layer:
    """Return what the file at a path sets; nothing if there is none, which is a fault only of a required one."""
    try:
        file = read_file(path, origin, required=required)
    except SettingError as error:
        return Layer({}, (error,))
    return of_file(file, model) if file else Layer({})


def of_file(file: TableFile, model: type[BaseModel]) -> Layer:
    """Return what a file sets; nothing if anything in it is wrong."""
    try:
        tables = parse(file)
    except SettingError as error:
        return Layer({}, (error,))
    try:
        checked = model.model_validate(tables, strict=True)
    except ValidationError as error:
        return Layer({}, validation_errors(file, error, model, hint=_EXPLAIN))
    return Layer({key: Sourced(value, file.origin) for key, value in _leaves(checked.model_dump(exclude_unset=True))})


def of_environment(environ: Mapping[str, str], model: type[BaseModel]) -> Layer:
    """Return what variables `DROIDDECK_<SECTION>_<KEY>` set.

    Only a variable of a known section can be misspelt: other programs may own other names that begin alike. The token
    of a session around this one, `DROIDDECK_SESSION`, has no key and so is none.
    """
    by_variable = {key.variable: key for key in keys_of(model).values()}
    values: dict[str, Sourced] = {}
    faults: list[SettingError] = []
    for variable in sorted(environ):
        section = _section(variable, model)
        if section is None:
            continue
        place = f"environment {variable}"
        key = by_variable.get(variable)
        if section == OPEN_SECTION:
            key = variable_of_guest(variable.removeprefix(_variable_prefix(section)), "")
        if key is None:
            faults.append(_unknown_variable(place, variable, section, by_variable))
            continue
        layer = _of_value(key, key.from_text(environ[variable]), place, place, model)
        values.update(layer.values)
        faults.extend(layer.faults)
    return Layer(values, tuple(faults))


def of_flags(flags: Mapping[str, object], model: type[BaseModel]) -> Layer:
    """Return what options of the command line set, given by dotted key."""
    keys = keys_of(model)
    values: dict[str, Sourced] = {}
    faults: list[SettingError] = []
    for name, value in flags.items():
        key = keys.get(name)
        if key is None:
            faults.append(unknown_key("flag", name, name, tuple(keys)))
            continue
        origin = f"flag {key.flag or name}"
        layer = _of_value(key, value, origin, origin, model)
        values.update(layer.values)
        faults.extend(layer.faults)
    return Layer(values, tuple(faults))


def nested(values: Mapping[str, Sourced]) -> dict[str, Any]:
    """Return values by dotted key as tables in tables, as the model reads them."""
    tables: dict[str, dict[str, object]] = {}
    for key, sourced in values.items():
        section, _, name = key.partition(".")
        tables.setdefault(section, {})[name] = sourced.value
    return dict(tables)


def _of_value(key: Key, value: object, origin: str, place: str, model: type[BaseModel]) -> Layer:
    section, name = key.path
    try:
        checked = model.model_validate({section: {name: value}}, strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False)
        return Layer({}, tuple(fault(place, key.path, detail, model, hint=_EXPLAIN) for detail in details))
    return Layer({leaf: Sourced(found, origin) for leaf, found in _leaves(checked.model_dump(exclude_unset=True))})


def _leaves(tables: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, object]]:
    for section, table in tables.items():
        for name, value in table.items():
            yield f"{section}.{name}", value


def _variable_prefix(section: str) -> str:
    return f"{VARIABLE_PREFIX}{section.upper()}_"


def _section(variable: str, model: type[BaseModel]) -> str | None:
    """Return the section that a variable's name belongs to; None where it is none of ours."""
    return next((name for name in model.model_fields if variable.startswith(_variable_prefix(name))), None)


def _unknown_variable(place: str, variable: str, section: str, known: Iterable[str]) -> SettingError:
    prefix = _variable_prefix(section)
    name = variable.removeprefix(prefix)
    alike = [other.removeprefix(prefix) for other in known if other.startswith(prefix)]
    return unknown_key(place, f"{section}.{name.lower()}", name, alike, prefix=prefix)
