# SPDX-License-Identifier: GPL-3.0-or-later
"""The three texts that are made from the settings' models: the vendor's file, the reference page and the JSON Schema.

They are committed; a test makes them again and compares, so none can be stale.
"""

from __future__ import annotations

import json
import textwrap
from itertools import groupby
from typing import TYPE_CHECKING, Final

from droiddeck_session.setting_keys import OPEN_SECTION, VARIABLE_PREFIX, toml_value
from droiddeck_session.settings import FILE_NAME, KEYS, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from droiddeck_session.setting_keys import Key

_SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_WIDTH: Final = 100

_VENDOR_HEAD: Final = f"""\
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The vendor's settings: every key with its default. Made by `droiddeck-session settings reference --toml`.
# To change one, set it in /etc/droiddeck-session/{FILE_NAME} or ~/.config/droiddeck-session/{FILE_NAME}, by the
# variable named beside it, or by an option; the later of these wins.
"""

_REFERENCE_HEAD: Final = f"""\
# Settings

Made by `droiddeck-session settings reference`; do not edit.

Five layers set a value, and of a key that several set, the last one's counts:

1. the vendor's file, which sets every key to its default;
2. `/etc/droiddeck-session/{FILE_NAME}`;
3. `$XDG_CONFIG_HOME/droiddeck-session/{FILE_NAME}` (`~/.config` where that is unset);
4. environment variables `{VARIABLE_PREFIX}<SECTION>_<KEY>`;
5. options of the command line.

`droiddeck-session settings show` prints every value with the layer it is from, `settings explain KEY` all layers that
set one key, and `settings validate` checks the files and the environment. `docs/settings.schema.json` is the JSON
Schema of the files, for editors.

- In the environment a boolean is `true`, `yes`, `on` or `1`, or `false`, `no`, `off` or `0`. The option of a boolean
  has a form that turns it off: `--no-hdr`.
- TOML knows no null: an empty text leaves a setting unset that may be unset.
- An unknown key is an error, in the environment too if its section is known. Variables `{VARIABLE_PREFIX}*` of no
  section are left to whoever owns them; `DROIDDECK_SESSION` marks the processes of a session and is no setting.
- A file must be TOML in UTF-8 of at most 1 MiB, without a byte order mark. Lines may end in CR LF.
"""

_OPEN_SECTION_TEXT: Final = f"""\
Variables for the guest, by name. A name is letters, digits and `_`, not led by a digit; a value is any text, taken as
it is. `{VARIABLE_PREFIX}ENVIRONMENT_NAME=VALUE` sets `NAME`. Errors and logs tell names only, never values.

```toml
[{OPEN_SECTION}]
WINEDLLOVERRIDES = "d3dcompiler_47=n,b"
```
"""


def vendor_toml() -> str:
    """Return `config/config.toml`: every key, its description and its default."""
    lines = [_VENDOR_HEAD]
    for section, keys in _sections():
        lines.append(f"[{section}]")
        for key in keys:
            lines += textwrap.wrap(key.description, _WIDTH, initial_indent="# ", subsequent_indent="# ")
            lines += [f"# {key.values}; {_setters(key)}", f"{key.path[1]} = {toml_value(key.default)}"]
        lines.append("")
    lines.append(f'# {Settings.model_fields[OPEN_SECTION].description}, as NAME = "VALUE"\n[{OPEN_SECTION}]\n')
    return "\n".join(lines)


def reference_markdown() -> str:
    """Return `docs/settings.md`."""
    lines = [_REFERENCE_HEAD]
    for section, keys in _sections():
        what = (Settings.model_fields[section].annotation.__doc__ or "").partition(": ")[2]
        lines += [f"## [{section}]", "", what[:1].upper() + what[1:], ""]
        lines += ["| key | what | values | default | variable | option |", "|---|---|---|---|---|---|"]
        lines += [_row(key) for key in keys]
        lines.append("")
    lines += [f"## [{OPEN_SECTION}]", "", _OPEN_SECTION_TEXT]
    return "\n".join(lines).rstrip("\n") + "\n"


def json_schema() -> str:
    """Return `docs/settings.schema.json`: what a settings file may hold, for editors and other programs."""
    schema = {"$schema": _SCHEMA_DIALECT, **Settings.model_json_schema(), "title": "droiddeck-session settings"}
    for section in schema["properties"].values():
        # The defaults stand at the keys; here they would be said twice.
        section.pop("default", None)
    for table in schema["$defs"].values():
        for key in table["properties"].values():
            # As TOML has it, which knows no null.
            key["default"] = "" if key["default"] is None else key["default"]
    return json.dumps(schema, indent=2) + "\n"


def _sections() -> Iterator[tuple[str, Iterator[Key]]]:
    return groupby(KEYS.values(), key=lambda key: key.path[0])


def _setters(key: Key) -> str:
    return f"{key.variable}, {key.flag}" if key.flag else key.variable


def _row(key: Key) -> str:
    default = "unset" if key.default is None else f"`{toml_value(key.default)}`"
    flag = f"`{key.flag}`" if key.flag else ""
    return f"| `{key.path[1]}` | {key.description} | {key.values} | {default} | `{key.variable}` | {flag} |"
