# SPDX-License-Identifier: GPL-3.0-or-later
"""Every case of `verify`: each call with each path from each place, in one order, and the special ones."""

from __future__ import annotations

import os
import zlib

import verify_special
from verify_calls import AT_FDCWD, NUMBERS
from verify_paths import (
    ABOVE_MOUNT_POINTS,
    ABSOLUTE,
    FAR,
    FOLDERS,
    FROM_GONE,
    GONE,
    HELD,
    LABELLED,
    NOT_OPEN,
    PIPE,
    PROC_TO_TREE,
    READ_ONLY,
    READ_PLACES,
    RELATIVE,
    REMOVED,
    REMOVED_FOLDER,
    THROUGH_DESCRIPTOR,
    THROUGH_FILE,
    WRITE_PLACES,
)
from verify_reads import READS, Row
from verify_writes import WRITES

TYPE_CHECKING = False  # the name that checkers know; importing typing would cost a start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCRATCH = "/scratch"
# A tracer knows mount points by name, so what leads to one keeps its name. The kernel would move the mount along.
RENAMES = ("rename", "renameat", "renameat2")


class Surroundings:
    """What cases start from: held descriptors and the working directory.

    Attributes:
        made_anew: the host has made things anew, so that held descriptors may be of what was removed.
    """

    def __init__(self) -> None:
        self._removed()
        self.made_anew = True

    def _removed(self) -> None:
        """Hold a file and a folder that are no more, and a pipe."""
        folder, file = f"{SCRATCH}/gone", f"{SCRATCH}/removed"
        os.mkdir(folder)
        _hold(REMOVED_FOLDER, os.open(folder, os.O_RDONLY))
        os.rmdir(folder)
        opened = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        os.write(opened, b"removed")
        _hold(REMOVED, opened)
        os.unlink(file)
        reader, writer = os.pipe()
        _hold(PIPE, reader)
        os.close(writer)

    def enter(self, place: str) -> int:
        """Make a place the one that relative paths start from; return the directory descriptor to use."""
        if self.made_anew:
            for number, path, flags in HELD.values():
                _hold(number, os.open(path, flags))
            self.made_anew = False
        if place == GONE:
            os.fchmod(REMOVED_FOLDER, 0o755)  # nothing restores it: a chmod that was asked for would close it
            os.fchdir(REMOVED_FOLDER)
        else:
            os.chdir(FOLDERS.get(place, b"/links"))
        if place == NOT_OPEN[0]:
            return NOT_OPEN[1]
        return HELD[place][0] if place in HELD else AT_FDCWD


def _hold(number: int, opened: int) -> None:
    os.dup2(opened, number, inheritable=False)
    os.close(opened)


class Case:
    """One question.

    Args:
        name: the call or what is tried.
        place: where a relative path starts; empty where that does not matter.
        label: the path, or what stands for it.
        path_class: what is special about the path.
        ask: asks it.

    Attributes:
        chosen: whether it is asked where not all are: a call much like another one is tried on some paths only.
    """

    def __init__(
        self, name: str, place: str, label: str, path_class: str, ask: Callable[[], str], *, changes: bool,
        refusal: str = "",
    ) -> None:  # fmt: skip
        self.id = f"{name}@{place}:{label}" if place else f"{name}:{label}"
        self.path_class, self.ask, self.changes, self.refusal = path_class, ask, changes, refusal
        self.chosen = True


def _paths(*, changes: bool) -> Iterator[tuple[str, str, str, bytes]]:
    """Yield class, place, label and path."""
    for table in (ABSOLUTE,) if changes else (ABSOLUTE, READ_ONLY):
        for path_class, paths in table.items():
            yield from ((path_class, "", path, path.encode()) for path in paths)
    if changes:
        yield from (("proc", "ordinary", path, path.encode()) for path in PROC_TO_TREE)
    for path_class, labelled in LABELLED.items():
        yield from ((path_class, "", label, path) for label, path in labelled.items())
    for place in WRITE_PLACES if changes else READ_PLACES:
        yield from (("relative", place, path, path.encode()) for path in RELATIVE)
        if not changes:
            yield from (("far", place, path, path.encode()) for path in FAR)
    yield from (("gone", GONE, path or "empty", path.encode()) for path in FROM_GONE)


def _through_descriptors() -> Iterator[tuple[str, str, str, bytes]]:
    for place in (*HELD, NOT_OPEN[0]):
        folder = place in HELD and HELD[place][2] & os.O_DIRECTORY
        paths = THROUGH_DESCRIPTOR if folder else THROUGH_FILE
        yield from (("descriptor", place, path or "empty", path.encode()) for path in paths)


def _asking(surroundings: Surroundings, row: Row, place: str, path: bytes) -> Callable[[], str]:
    def ask() -> str:
        at = surroundings.enter(place)
        return row.ask(at, path)

    return ask


def _rows(surroundings: Surroundings, rows: tuple[Row, ...], *, changes: bool) -> Iterator[Case]:
    for row in rows:
        if row.needs not in NUMBERS:
            continue
        paths = list(_paths(changes=changes))
        if row.at:
            paths += _through_descriptors()
        for path_class, place, label, path in paths:
            ask = _asking(surroundings, row, place, path)
            refusal = "EBUSY" if row.needs in RENAMES and path in ABOVE_MOUNT_POINTS else row.refusal
            case = Case(row.name, place, label, path_class, ask, changes=changes, refusal=refusal)
            case.chosen = zlib.crc32(case.id.encode()) % row.one_in == 0
            yield case


def all_cases(surroundings: Surroundings) -> Iterator[Case]:
    """Yield every case, always in the same order."""
    yield from _rows(surroundings, READS, changes=False)
    yield from _rows(surroundings, WRITES, changes=True)
    for special in verify_special.SPECIAL:

        def ask(special: verify_special.Special = special) -> str:
            surroundings.enter("ordinary")
            return special.ask()

        yield Case(special.name, "", special.label, special.path_class, ask, changes=True, refusal=special.refusal)
