# SPDX-License-Identifier: GPL-3.0-or-later
"""`droiddeck-session settings`: what the settings are, who set them, and what is wrong with them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from droiddeck_session.cli.completion import setting_names
from droiddeck_session.cli.output import answer, environment, json_option, note
from droiddeck_session.errors import EXIT_CHECK_FAILED, EXIT_OK, SettingError
from droiddeck_session.layers import line_of, places, read_file, unknown_key
from droiddeck_session.paths import directories
from droiddeck_session.printable import exact
from droiddeck_session.setting_keys import OPEN_SECTION, toml_value, variable_of_guest
from droiddeck_session.setting_layers import Layer, Sourced, of_path
from droiddeck_session.setting_reference import json_schema, reference_markdown, vendor_toml
from droiddeck_session.settings import FILE_NAME, KEYS, NO_LAYER, Settings, layers_of, load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from droiddeck_session.setting_keys import Key


@click.group()
def settings() -> None:
    """Show, explain and check the settings of all layers: vendor, system, user, environment.

    Options of other verbs (--guest, --backend, ...) are the layer above these.
    """


@settings.command()
@json_option()
def show(*, as_json: bool) -> None:
    """Print every setting with its value and the layer it is from."""
    environ = environment()
    loaded = load(directories=directories(environ), environ=environ, flags={})
    values = {
        f"{section}.{name}": value
        for section, table in loaded.settings.model_dump().items()
        for name, value in table.items()
    }
    if as_json:
        entries = {key: {"value": value, "origin": loaded.origin(key)} for key, value in values.items()}
        answer({"settings": entries})
        return
    for key, value in values.items():
        click.echo(exact(f"{key} = {toml_value(value)}  # {loaded.origin(key)}"))


@settings.command()
@click.argument("key", metavar="KEY", shell_complete=setting_names)
@json_option()
def explain(*, key: str, as_json: bool) -> None:
    """Tell what KEY (as guest.name) is for, what it may be, and every layer that sets it, the winner last."""
    row = _row_of(key)
    environ = environment()
    layers = layers_of(directories=directories(environ), environ=environ, flags={})
    for fault in (fault for layer in layers for fault in layer.faults):
        # Whoever has a fault in a file was sent here by its hint.
        note(f"not counted: {fault.message}")
    set_by = [layer.values[row.name] for layer in layers if row.name in layer.values]
    told = _places(row, set_by)
    value, origin = (set_by[-1].value, set_by[-1].origin) if set_by else (row.default, NO_LAYER)
    if as_json:
        answer(
            {
                "key": row.name,
                "description": row.description,
                "values": row.values,
                "default": row.default,
                "value": value,
                "origin": origin,
                "variable": row.variable,
                "flag": row.flag,
                "set_by": [{"origin": place, "value": entry.value} for place, entry in told],
            }
        )
        return
    facts = {
        "values": row.values,
        "default": _shown(row.default),
        "value": _shown(value),
        "origin": origin,
        "variable": row.variable,
        "option": row.flag or "none",
    }
    click.echo(f"{row.name}: {row.description}")
    for name, text in facts.items():
        click.echo(f"  {name:<9} {exact(text)}")
    click.echo("  set by" if set_by else "  set by    no layer")
    for place, entry in told:
        click.echo(f"    {exact(place)}: {exact(_shown(entry.value))}")


@settings.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@json_option()
def validate(*, files: tuple[Path, ...], as_json: bool) -> int:
    """Check settings files, or without FILE all layers; one line per fault, and status 1 if there is any."""
    environ = environment()
    checked: tuple[Layer, ...] = (
        tuple(of_path(file, os.fspath(file), Settings, required=True) for file in files)
        if files
        else layers_of(directories=directories(environ), environ=environ, flags={})
    )
    faults = [fault for layer in checked for fault in layer.faults]
    if as_json:
        answer({"ok": not faults, **_faults_document(faults)})
    else:
        for fault in faults:
            click.echo(exact(fault.message))
    return EXIT_CHECK_FAILED if faults else EXIT_OK


@settings.command()
def schema() -> None:
    """Print the JSON Schema of a settings file."""
    click.echo(json_schema(), nl=False)


@settings.command()
@click.option("--toml", "as_toml", is_flag=True, help="The vendor's file instead: every key with its default.")
def reference(*, as_toml: bool) -> None:
    """Print the reference of all settings as Markdown."""
    click.echo(vendor_toml() if as_toml else reference_markdown(), nl=False)


def _row_of(name: str) -> Key:
    """Return the setting of a dotted name.

    Raises:
        SettingError: there is none; names the nearest.
    """
    section, _, variable = name.partition(".")
    if section == OPEN_SECTION and variable:
        return variable_of_guest(variable, Settings.model_fields[OPEN_SECTION].description or "")
    if name not in KEYS:
        message = unknown_key("settings explain", name, name, tuple(KEYS)).message
        raise SettingError(code="UNKNOWN_KEY", message=message, hint="droiddeck-session settings show lists them all")
    return KEYS[name]


def _shown(value: object) -> str:
    return "unset" if value is None else toml_value(value)


def _places(row: Key, set_by: Iterable[Sourced]) -> list[tuple[str, Sourced]]:
    """Return who set a key, a file with the line; files that set nothing may be of any kind and are not opened."""
    origins = {entry.origin for entry in set_by}
    found = [read_file(*place) for place in places(FILE_NAME, directories(environment())) if place[1] in origins]
    files = {file.origin: file for file in found if file is not None}
    return [
        (f"{entry.origin}:{line_of(files[entry.origin], row.path)}" if entry.origin in files else entry.origin, entry)
        for entry in set_by
    ]


def _faults_document(faults: list[SettingError]) -> dict[str, object]:
    if not faults:
        return {"faults": []}
    rows = [{"code": fault.code, "message": fault.message, "hint": fault.hint} for fault in faults]
    return {"error": rows[0], "faults": rows}
