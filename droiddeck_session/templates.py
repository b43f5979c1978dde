# SPDX-License-Identifier: GPL-3.0-or-later
"""Templates of paths and values: `{name}` is what is only known on a machine, `{{` and `}}` are single braces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLACEHOLDER: Final = re.compile(r"\{\{|\}\}|\{([a-z][a-z0-9_.]*)\}")
_STRAY: Final = re.compile(r"[{}]")


def expand(template: str, names: Mapping[str, str]) -> str | None:
    """Return a template with each `{name}` replaced, or None if one of them stands for nothing here.

    What is put in is not looked at again.
    """
    if any(name not in names for name in placeholders(template)):
        return None
    return _PLACEHOLDER.sub(lambda found: names[found[1]] if found[1] else found[0][0], template)


def placeholders(template: str) -> list[str]:
    """Return the names that a template uses."""
    return [name for name in _PLACEHOLDER.findall(template) if name]


def is_template(text: str) -> bool:
    """Whether every brace of a text belongs to a `{name}` or is doubled."""
    return not _STRAY.search(_PLACEHOLDER.sub("", text))


def literal(text: str) -> str:
    """Return the template that expands to this text, whatever it holds."""
    return text.replace("{", "{{").replace("}", "}}")
