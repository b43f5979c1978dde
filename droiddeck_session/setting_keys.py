# SPDX-License-Identifier: GPL-3.0-or-later
"""What one setting is: its name in files, in the environment and on the command line, its type, limits and default.

All of it is read from the fields of the settings' models, so that no verb, no help text and no reference says it again.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args, get_origin

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic.fields import FieldInfo

VARIABLE_PREFIX: Final = "DROIDDECK_"
# The one section whose keys are the user's own: variables for the guest.
OPEN_SECTION: Final = "environment"

Kind = Literal["text", "choice", "boolean", "whole number", "number"]

_TRUTH: Final = {
    "true": True, "yes": True, "on": True, "1": True,
    "false": False, "no": False, "off": False, "0": False,
}  # fmt: skip
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")


@dataclass(frozen=True)
class Flag:
    """Marks a field that verbs offer as an option of this name; a boolean's has a `--no-` form as well."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Key:
    """One setting.

    Attributes:
        name: section and key, as `guest.name`.
        kind: what its values are.
        description: what it is for.
        default: its value where no layer sets it; None for unset.
        choices: all values of a choice.
        limits: least and greatest value of a number.
        flag: option that sets it, or None.
    """

    name: str
    kind: Kind
    description: str
    default: object
    choices: tuple[str, ...] = ()
    limits: tuple[int, int] | None = None
    flag: str | None = None

    @property
    def path(self) -> tuple[str, str]:
        """Section and key."""
        section, _, key = self.name.partition(".")
        return section, key

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        section, key = self.path
        return f"{VARIABLE_PREFIX}{section.upper()}_{key if section == OPEN_SECTION else key.upper()}"

    @property
    def values(self) -> str:
        """What it may be, in words."""
        if self.kind == "choice":
            return "one of " + ", ".join(toml_value(choice) for choice in self.choices)
        if self.kind == "boolean":
            return "true or false"
        if self.limits:
            return f"{self.kind} from {self.limits[0]} to {self.limits[1]}"
        return "text" if self.default is not None or self.path[0] == OPEN_SECTION else "text, empty for unset"

    def from_text(self, text: str) -> object:
        """Return the value that an environment variable's text stands for; the text itself if it stands for none."""
        match self.kind:
            case "boolean":
                return _TRUTH.get(text.lower(), text)
            case "whole number" if _WHOLE.fullmatch(text):
                return int(text)
            case "number" if _NUMBER.fullmatch(text):
                return float(text)
        return text


def keys_of(model: type[BaseModel]) -> Mapping[str, Key]:
    """Return every fixed setting of a model of sections, by name, in the model's order."""
    keys = [
        _key(f"{section}.{name}", field)
        for section, outer in model.model_fields.items()
        if isinstance(outer.annotation, type) and issubclass(outer.annotation, BaseModel)
        for name, field in outer.annotation.model_fields.items()
    ]
    return {key.name: key for key in keys}


def variable_of_guest(name: str, description: str) -> Key:
    """Return the setting that is one of the user's own variables for the guest."""
    return Key(name=f"{OPEN_SECTION}.{name}", kind="text", description=description, default=None)


def toml_value(value: object) -> str:
    """Return a setting's value as TOML has it; an unset one is an empty text.

    A byte that is not UTF-8 stays the lone surrogate that it is, which no TOML file can hold.
    """
    if isinstance(value, str) or value is None:
        return json.dumps(value or "", ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower()


def _key(name: str, field: FieldInfo) -> Key:
    annotation = field.annotation
    choices: tuple[str, ...] = get_args(annotation) if get_origin(annotation) is Literal else ()
    kinds: dict[object, Kind] = {bool: "boolean", int: "whole number", float: "number"}
    marks = {limit: getattr(mark, limit) for mark in field.metadata for limit in ("ge", "le") if hasattr(mark, limit)}
    return Key(
        name=name,
        kind="choice" if choices else kinds.get(annotation, "text"),
        description=field.description or "",
        default=field.default,
        choices=choices,
        limits=(marks["ge"], marks["le"]) if marks else None,
        flag=next((mark.name for mark in field.metadata if isinstance(mark, Flag)), None),
    )
