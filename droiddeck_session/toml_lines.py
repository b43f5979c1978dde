# SPDX-License-Identifier: GPL-3.0-or-later
"""On which line each key of a TOML document stands, for errors that name it.

tomllib gives values without places. This reads the same text once more, looking only for keys and brackets; the text is
known to be valid by then, so nothing is checked. Source: TOML 1.0.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

KeyPath = tuple[str | int, ...]

# A string may hold brackets, so it is one token; a multi-line one may end in up to two quotes of its own.
_TOKEN: Final = re.compile(
    r"""
      (?P<skip> [ \t\r]+ | \#[^\n]* )
    | (?P<word> "{3}(?:\\.|[^\\])*?"{3,5} | '{3}.*?'{3,5} | "(?:\\.|[^"\\\n])*" | '[^'\n]*' | [^\s\[\]{}=,."'\#]+ )
    | (?P<mark> [\n\[\]{}=,.] )
    """,
    re.VERBOSE | re.DOTALL,
)
_ARRAY_OF_TABLES: Final = 2


@dataclass
class _Frame:
    """A table or array that is being read; `index` is that of the array's next element, None in a table."""

    path: KeyPath
    index: int | None = None
    key: KeyPath = ()


class _Scanner:
    """Follows a document token by token and notes the line of each key, element and table header."""

    def __init__(self) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._counts: dict[KeyPath, int] = {}
        self._frames = [_Frame(())]
        self._words: list[str] = []
        self._brackets = 0
        self._reading_key = True

    def feed(self, token: str, line: int) -> None:
        if self._reading_key:
            self._in_key(token, line)
        else:
            self._in_value(token, line)

    def _in_key(self, token: str, line: int) -> None:
        match token:
            case "[":
                self._brackets += 1
            case "]" if self._words:
                self._enter_table(line)
            case "=":
                self._name_value(line)
            case "}":
                self._frames.pop()
                self._reading_key = False
            case "]" | "." | "," | "\n":
                pass
            case _:
                self._words.append(_plain(token))

    def _in_value(self, token: str, line: int) -> None:
        top = self._frames[-1]
        match token:
            case "\n":
                self._reading_key = len(self._frames) == 1
            case "," if top.index is not None:
                top.index += 1
            case ",":
                self._reading_key = True
            case "]" | "}":
                self._frames.pop()
            case "[":
                self._frames.append(_Frame(self._element(line), 0))
            case "{":
                self._frames.append(_Frame(self._element(line)))
                self._reading_key = True
            case _:
                self._element(line)

    def _enter_table(self, line: int) -> None:
        path: KeyPath = ()
        for word in self._words[:-1]:
            path = (*path, word)
            self.lines.setdefault(path, line)
            if path in self._counts:
                path = (*path, self._counts[path])
        path = (*path, self._words[-1])
        if self._brackets == _ARRAY_OF_TABLES:
            self.lines.setdefault(path, line)
            self._counts[path] = self._counts.get(path, -1) + 1
            path = (*path, self._counts[path])
        self.lines[path] = line
        self._frames = [_Frame(path)]
        self._words, self._brackets = [], 0

    def _name_value(self, line: int) -> None:
        top = self._frames[-1]
        top.key = top.path
        for word in self._words:
            top.key = (*top.key, word)
            self.lines.setdefault(top.key, line)
        self._words, self._reading_key = [], False

    def _element(self, line: int) -> KeyPath:
        top = self._frames[-1]
        path = top.key if top.index is None else (*top.path, top.index)
        self.lines.setdefault(path, line)
        return path


def _plain(word: str) -> str:
    """Return a bare or quoted key as tomllib has it."""
    return str(tomllib.loads(f"key = {word}")["key"]) if word[0] in "\"'" else word


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line = 1
    for found in _TOKEN.finditer(text):
        if found.lastgroup != "skip":
            yield found[0], line
        line += found[0].count("\n")


@lru_cache(maxsize=16)
def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line of every key, array element and table of a valid TOML document; the caller must not change it."""
    scanner = _Scanner()
    for token, line in _tokens(text):
        scanner.feed(token, line)
    return scanner.lines
