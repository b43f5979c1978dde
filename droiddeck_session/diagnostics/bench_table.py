# SPDX-License-Identifier: GPL-3.0-or-later
"""What `./dev bench tracer` measured as Markdown tables: one row per figure, one column per backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def tables(measured: Mapping[str, Any], baseline: str) -> str:
    """Return the tables: pinned, not pinned, and stops.

    Args:
        measured: what bench_tracer.tracer() returned.
        baseline: the backend that the others are compared with.
    """
    return "\n\n".join(
        "\n".join(lines)
        for lines in (
            _times("pinned", measured["pinned"], baseline),
            _times("unpinned", measured["unpinned"], baseline),
            _stops(measured["stops"]),
        )
    )


def _times(title: str, figures: Mapping[str, Mapping[str, Mapping[str, float]]], baseline: str) -> Iterator[str]:
    names = list(dict.fromkeys(name for row in figures.values() for name in row))
    yield from _head(title, names)
    for what, row in figures.items():
        yield _row(what, [_time(row.get(name), name == baseline) for name in names])


def _time(figure: Mapping[str, float] | None, is_baseline: bool) -> str:  # noqa: FBT001 - both are of one cell
    if figure is None:
        return "-"
    return f"{figure['median']:.2f}" if is_baseline else f"{figure['median']:.2f} ({figure['ratio']:.2f})"


def _stops(stops: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    names = list(dict.fromkeys(name for row in stops.values() for name in row))
    yield from _head("stops", names)
    for what, row in stops.items():
        yield _row(what, [f"{row[name]:g}" if name in row else "-" for name in names])


def _head(title: str, names: list[str]) -> Iterator[str]:
    yield _row(title, names)
    yield "|---" * (len(names) + 1) + "|"


def _row(first: str, cells: list[str]) -> str:
    return f"| {' | '.join([first, *cells])} |"
