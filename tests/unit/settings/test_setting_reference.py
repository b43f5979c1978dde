# SPDX-License-Identifier: GPL-3.0-or-later
"""The committed texts about settings are what the models say, and the schema means what the models mean."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from droiddeck_session.setting_reference import json_schema, reference_markdown, vendor_toml
from droiddeck_session.settings import KEYS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("file", "text", "command"),
    [
        ("config/config.toml", vendor_toml(), "reference --toml"),
        ("docs/settings.md", reference_markdown(), "reference"),
        ("docs/settings.schema.json", json_schema(), "schema"),
    ],
    ids=["vendor", "reference", "schema"],
)
def test_a_committed_text_is_what_the_models_say(file: str, text: str, command: str) -> None:
    hint = f"made again by: droiddeck-session settings {command} > {file}"
    assert (ROOT / file).read_text(encoding="utf-8") == text, hint


def test_every_key_is_described() -> None:
    assert [key.name for key in KEYS.values() if not key.description] == []


def test_the_schema_has_every_key_with_its_default_and_limits() -> None:
    schema: dict[str, Any] = json.loads(json_schema())
    vendor = tomllib.loads(vendor_toml())
    assert schema["additionalProperties"] is False
    for key in KEYS.values():
        section, name = key.path
        table = schema["$defs"][schema["properties"][section]["$ref"].rpartition("/")[2]]
        entry = table["properties"][name]
        assert table["additionalProperties"] is False
        assert entry["default"] == vendor[section][name]
        assert entry["description"] == key.description
        assert (entry.get("minimum"), entry.get("maximum")) == (key.limits or (None, None))
        assert tuple(entry.get("enum", ())) == key.choices
