# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that set settings: made from the settings' own table, so that no verb restates a name, type or help text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from droiddeck_session.cli.completion import backend_choices, guest_names
from droiddeck_session.settings import KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from droiddeck_session.setting_keys import Key

_COMPLETED_BY: Final = {"guest.name": guest_names, "backend.name": backend_choices}


def flag_options(keys: Iterable[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a verb the options of these settings; `given_flags` reads what they got.

    Args:
        keys: dotted names of settings that have an option, in the order of `--help`.
    """
    options = [_option(KEYS[key]) for key in keys]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def given_flags(options: Mapping[str, Any]) -> dict[str, object]:
    """Return the settings that the command line gives, by dotted key, out of all parameters of a verb."""
    values = {key.name: options.get(_parameter(key)) for key in KEYS.values()}
    return {name: value for name, value in values.items() if value is not None}


def _parameter(key: Key) -> str:
    return "setting_" + key.name.replace(".", "_")


def _option(key: Key) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    if key.flag is None:
        raise ValueError(f"{key.name} has no option; mark its field with a Flag")
    names = f"{key.flag}/--no-{key.flag.removeprefix('--')}" if key.kind == "boolean" else key.flag
    # None is "not given": the value is then that of a weaker layer, which the option cannot know.
    return click.option(
        names,
        _parameter(key),
        type=_type(key),
        default=None,
        help=_help(key),
        shell_complete=_COMPLETED_BY.get(key.name),
    )


def _type(key: Key) -> click.ParamType[Any]:
    least, greatest = key.limits or (None, None)
    match key.kind:
        case "boolean":
            return click.BOOL
        case "choice":
            return click.Choice(key.choices)
        case "whole number":
            return click.IntRange(least, greatest)
        case "number":
            return click.FloatRange(least, greatest)
    return click.STRING


def _help(key: Key) -> str:
    return f"{key.description[:1].upper()}{key.description[1:]}."
