# SPDX-License-Identifier: GPL-3.0-or-later
"""Layered TOML files: the vendor's, the system's and the user's of one name, and errors that name file, line and key.

A file is somebody else's: it may be a named pipe, a folder, cut off by a crash or five megabytes of something else.
Each of these is one clear error; none blocks. A value is repeated in an error only where it is a number out of range or
should have been one of a fixed set: a free text may be a secret.
"""

from __future__ import annotations

import difflib
import errno
import json
import os
import re
import reprlib
import stat
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from droiddeck_session.errors import SettingError
from droiddeck_session.paths import SYSTEM_CONFIG, Directories, vendor_file
from droiddeck_session.toml_lines import key_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

SIZE_LIMIT: Final = 1 << 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_PLACE: Final = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL
)
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")

# What a rejected value may be repeated for: none of these is ever a free text.
_REPEATED: Final = frozenset({"literal_error", "greater_than_equal", "less_than_equal", "greater_than", "less_than"})
_WORDS: Final = {
    "string_type": "must be a text in quotes",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "missing": "is missing",
}


@dataclass(frozen=True)
class TableFile:
    """One TOML file of a layer.

    Attributes:
        origin: its path as the user is told it; `vendor config/NAME` for the vendor's, wherever it is installed.
        text: what it holds.
    """

    origin: str
    text: str


def places(name: str, directories: Directories, *, system: Path = SYSTEM_CONFIG) -> tuple[tuple[Path, str], ...]:
    """Return where a file of this name may be and how it is told: the vendor's, then the system's, then the user's.

    Args:
        name: file name, the same in all three places.
        directories: where the user's configuration is.
        system: the system's configuration folder.
    """
    return (
        (vendor_file(name), f"vendor config/{name}"),
        (system / name, os.fspath(system / name)),
        (directories.config / name, os.fspath(directories.config / name)),
    )


def read_layers(name: str, directories: Directories, *, system: Path = SYSTEM_CONFIG) -> tuple[TableFile, ...]:
    """Return the files of this name that exist, the weakest first; arguments as `places`.

    Raises:
        SettingError: a file is there but cannot be used; names it.
    """
    files = (read_file(path, origin) for path, origin in places(name, directories, system=system))
    return tuple(file for file in files if file is not None)


def read_file(path: Path, origin: str, *, required: bool = False) -> TableFile | None:
    """Return one file, or None if there is none.

    Args:
        path: where it is.
        origin: how the user is told of it.
        required: make its absence an error.

    Raises:
        SettingError: it cannot be used; names it.
    """
    text = _read(path, origin)
    if text is None and required:
        raise _unreadable(origin, os.strerror(errno.ENOENT))
    return TableFile(origin, text) if text is not None else None


def parse(file: TableFile) -> dict[str, object]:
    """Return the tables of a file.

    Raises:
        SettingError: it is no TOML; the message begins with FILE:LINE:COLUMN.
    """
    try:
        return tomllib.loads(file.text)
    except RecursionError:
        what, line, column = "brackets are nested too deeply", 1, 1
    except tomllib.TOMLDecodeError as error:
        what, line, column = _place(str(error), file.text)
    except ValueError:
        # int() refuses to read more than 4300 digits, and does not say where.
        what, line, column = "a number has too many digits", 1, 1
    raise SettingError(
        code="BAD_TOML",
        message=f"{file.origin}:{line}:{column}: not TOML: {what}",
        hint="correct that line, or move the file away to do without it",
    ) from None


def line_of(file: TableFile, path: Sequence[str | int]) -> int:
    """Return the line of a key, or of the nearest thing around it that the file has; 1 if it has none.

    Args:
        file: a file that `parse` accepts.
        path: names and list positions, as `("bind", 3, "host")`.
    """
    known = _known(file, path)
    return key_lines(file.text)[known] if known else 1


def validation_error(file: TableFile, error: ValidationError, model: type[BaseModel] | None = None) -> SettingError:
    """Return the first fault that pydantic found in a file's tables, as `FILE:LINE: KEY: what is wrong`."""
    return validation_errors(file, error, model)[0]


def validation_errors(
    file: TableFile, error: ValidationError, model: type[BaseModel] | None = None, *, hint: str = ""
) -> tuple[SettingError, ...]:
    """Return every fault that pydantic found in a file's tables, in the order of the file.

    Args:
        file: where the tables are from.
        error: what pydantic says of them; its locations are paths of the document.
        model: what the tables were to be; with it an unknown key is answered with the nearest known one.
        hint: where to read more; `{key}` in it is the key.
    """
    faults = []
    for detail in error.errors(include_url=False):
        path = detail["loc"] if detail["type"] == "missing" else _known(file, detail["loc"]) or detail["loc"]
        line = line_of(file, path)
        faults.append((line, fault(f"{file.origin}:{line}", path, detail, model, hint=hint)))
    return tuple(found for _, found in sorted(faults, key=lambda entry: entry[0]))


def fault(
    place: str, path: Sequence[str | int], detail: ErrorDetails, model: type[BaseModel] | None = None, *, hint: str = ""
) -> SettingError:
    """Return the error for one fault that pydantic found: `PLACE: KEY: what is wrong`."""
    key = dotted(path)
    if detail["type"] == "extra_forbidden":
        *parents, name = detail["loc"]
        return unknown_key(place, key, str(name), _fields(model, parents) if model else ())
    code = "MISSING_KEY" if detail["type"] == "missing" else "BAD_VALUE"
    return SettingError(code=code, message=f"{place}: {key}: {_wrong(detail)}", hint=hint.format(key=key))


def unknown_key(place: str, key: str, name: str, known: Sequence[str], *, prefix: str = "") -> SettingError:
    """Return the error for a key that nothing reads, with the nearest one that is read.

    Args:
        place: file and line, or what else sets it.
        key: the whole key as the user wrote it.
        name: the part of it that is not known.
        known: what it could have been.
        prefix: what leads each of these as the user would write it.
    """
    close = difflib.get_close_matches(name, known, n=1)
    elsewhere = [other for other in known if other.endswith(f".{name}")]
    meant = "".join(f"; did you mean {prefix}{other}?" for other in (close or elsewhere)[:1])
    names = ", ".join(prefix + other for other in known if "." not in other)
    return SettingError(
        code="UNKNOWN_KEY",
        message=f"{place}: {key}: unknown key{meant}",
        hint=f"known here: {names}" if names else "remove it",
    )


def dotted(path: Sequence[str | int]) -> str:
    """Return a path as people write it: `bind[3].host`, `environment."A B"`."""
    parts = (
        f"[{part}]" if isinstance(part, int) else f".{part if _BARE_KEY.fullmatch(part) else json.dumps(part)}"
        for part in path
    )
    return "".join(parts).removeprefix(".")


def _wrong(detail: ErrorDetails) -> str:
    """Return what is wrong with a value, without the value unless it cannot be a secret."""
    kind = detail["type"]
    text = _WORDS.get(kind) or detail["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    text = text.replace("greater than or equal to", "at least").replace("less than or equal to", "at most")
    return f"{text}, not {reprlib.repr(detail['input'])}" if kind in _REPEATED else text


def _fields(model: type[BaseModel], parents: Sequence[str | int]) -> tuple[str, ...]:
    """Return the keys that a table below these parents may have, and with a dot those of the tables in it."""
    for part in parents:
        inner = _table(model, part)
        if inner is None and isinstance(part, str):
            return ()
        model = inner or model
    names = {field.alias or name: _table(model, name) for name, field in model.model_fields.items()}
    deeper = (f"{name}.{key}" for name, inner in names.items() if inner for key in inner.model_fields)
    return (*names, *deeper)


def _table(model: type[BaseModel], key: str | int) -> type[BaseModel] | None:
    """Return the model of a key that is a table or a list of tables."""
    field = model.model_fields.get(str(key))
    kinds = (field.annotation, *getattr(field.annotation, "__args__", ())) if field else ()
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _known(file: TableFile, path: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return the longest beginning of a path that the file has; pydantic's own marks (union members) fall off so."""
    lines: Mapping[tuple[str | int, ...], int] = key_lines(file.text)
    return next((found for end in range(len(path), 0, -1) if (found := tuple(path[:end])) in lines), ())


def _place(message: str, text: str) -> tuple[str, int, int]:
    """Return what tomllib says without the place, and the place; the end of the text if it gives none."""
    found = _PLACE.fullmatch(message)
    if found and found["line"]:
        return found["what"], int(found["line"]), int(found["column"])
    return found["what"] if found else message, text.count("\n") + 1, len(text) - text.rfind("\n")


def _read(path: Path, origin: str) -> str | None:
    """Return a file's text, or None if there is no such file."""
    try:
        # Opening a named pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        # The second where HOME is /dev/null, as it is for service users.
        return None
    except OSError as error:
        raise _unreadable(origin, os.strerror(error.errno or 0)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _unreadable(origin, "not a regular file")
    try:
        with os.fdopen(descriptor, "rb") as stream:
            content = stream.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise _unreadable(origin, os.strerror(error.errno or 0)) from error
    return _text(content, origin)


def _text(content: bytes, origin: str) -> str:
    if len(content) > SIZE_LIMIT:
        raise _unreadable(origin, f"larger than {SIZE_LIMIT >> 20} MiB")
    if content.startswith(_BYTE_ORDER_MARK):
        raise _not_text(origin, 1, "begins with a byte order mark", "save it as UTF-8 without a byte order mark")
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise _not_text(
            origin, line, "holds a NUL byte", "it was cut off by a crash, or is UTF-16; restore or remove it"
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _not_text(origin, line, f"byte {content[error.start]:#04x} is not UTF-8", "save it as UTF-8") from None


def _unreadable(origin: str, why: str) -> SettingError:
    return SettingError(
        code="UNREADABLE_FILE",
        message=f"{origin}: cannot be read: {why}",
        hint="make it a readable TOML file, or move it away to do without it",
    )


def _not_text(origin: str, line: int, what: str, hint: str) -> SettingError:
    return SettingError(code="BAD_TEXT", message=f"{origin}:{line}: {what}", hint=hint)
