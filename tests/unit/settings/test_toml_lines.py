# SPDX-License-Identifier: GPL-3.0-or-later
"""A key is found on the line where it stands, however the document writes it."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from droiddeck_session.toml_lines import key_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A value in a generated document: the number of its own line is put here, so the document says where everything is.
HERE = "@"

names = st.text("ab-_1", min_size=1, max_size=3) | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=4)
gaps = st.sampled_from(["", "\n", " # ] } = [x]\n", "\t\n\n"])
scalars = st.sampled_from(
    [
        HERE,
        f'"{HERE} ]\\" = {{"',
        f"'{HERE} [[ '",
        f'"""{HERE}\n] = "" [x]\n\\""""',
        f'"""{HERE}\n] }}"""""',
        f"'''{HERE}\n}}'' '''",
        f"'''{HERE}\n[ ''''",
    ]
)


def written(name: str, draw: Callable[[Any], Any]) -> str:
    bare = name.isascii() and name.replace("-", "a").replace("_", "a").isalnum()
    forms = [json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")]
    forms += [name] if bare else []
    forms += [f"'{name}'"] if "'" not in name and "\x7f" not in name else []
    return str(draw(st.sampled_from(forms)))


@st.composite
def values(draw: Callable[[Any], Any], depth: int = 2) -> str:
    form = draw(st.sampled_from(["scalar", "array", "table"])) if depth else "scalar"
    if form == "array":
        elements = draw(st.lists(values(depth=depth - 1), max_size=3))
        return f"[{','.join(f'{draw(gaps)} {element} {draw(gaps)}' for element in elements)}{draw(gaps)}]"
    if form == "table":
        keys = draw(st.lists(names, max_size=3, unique=True))
        return "{" + ", ".join(f"{written(key, draw)} = {draw(values(depth=depth - 1))}" for key in keys) + "}"
    return str(draw(scalars))


@st.composite
def bodies(draw: Callable[[Any], Any]) -> str:
    keys = draw(st.lists(names, max_size=3, unique=True))
    lines = []
    for key in keys:
        dotted = " . ".join(written(name, draw) for name in [key, *draw(st.lists(names, max_size=2))])
        lines.append(f"{dotted} = {draw(values())} # = [\n{draw(gaps)}")
    return "".join(lines)


@st.composite
def documents(draw: Callable[[Any], Any]) -> str:
    parts = [draw(bodies())] if draw(st.booleans()) else []
    used = set(tomllib.loads(parts[0].replace(HERE, "0"))) if parts else set()
    for name in draw(st.lists(names.filter(lambda name: name not in used), max_size=3, unique=True)):
        inner = written(name, draw) + "." + written("inner", draw)
        if draw(st.booleans()):
            parts.append(f"[{written(name, draw)}]\n")
            continue
        for _ in range(draw(st.integers(1, 3))):
            parts.append(f"[[{written(name, draw)}]] # ]]\n")
            parts.append(
                draw(
                    st.sampled_from(["", f"[{inner}]\nx = {HERE}\n", f"[[{inner}]]\ny={HERE}\n[[{inner}]]\ny={HERE}\n"])
                )
            )
    text = "".join(parts)
    return "\n".join(line.replace(HERE, str(number)) for number, line in enumerate(text.split("\n"), 1))


def leaves(tree: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Return every path of a document, with its value where that is no table or list."""
    branches = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else None
    if path:
        yield path, None if branches is not None else tree
    for name, branch in branches or ():
        yield from leaves(branch, (*path, name))


@given(documents())
def test_every_value_is_found_on_the_line_that_it_names(text: str) -> None:
    lines = key_lines(text)
    found = dict(leaves(tomllib.loads(text)))
    assert set(lines) == set(found)
    for path, value in found.items():
        if value is not None:
            assert lines[path] == int(str(value).split()[0])


def test_tables_and_arrays_of_tables_are_found_at_their_headers() -> None:
    text = '[a.b]\nx = 1\n\n[[bind]]\nhost = "/"\n[[bind]]\n[bind.when]\nhas = ["x",\n "y"]\n[a]\ny = {z = 2}\n'
    expected = {
        ("a",): 10, ("a", "b"): 1, ("a", "b", "x"): 2, ("a", "y"): 11, ("a", "y", "z"): 11,
        ("bind",): 4, ("bind", 0): 4, ("bind", 0, "host"): 5, ("bind", 1): 6, ("bind", 1, "when"): 7,
        ("bind", 1, "when", "has"): 8, ("bind", 1, "when", "has", 0): 8, ("bind", 1, "when", "has", 1): 9,
    }  # fmt: skip
    assert key_lines(text) == expected


def test_lines_that_end_in_cr_lf_count_once() -> None:
    assert key_lines('a = 1\r\n[t]\r\nb = """\r\n\r\n"""\r\nc = 2\r\n')[("t", "c")] == 6
