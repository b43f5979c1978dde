# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of guests share: a store in a folder of the test's own, and a tree that counts as a rootfs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from droiddeck_session.guest.store import Guest, GuestRecord, GuestStore
from droiddeck_session.paths import Directories, directories

if TYPE_CHECKING:
    from pathlib import Path

    from droiddeck_session.guest.stages import Stage


def fill(rootfs: Path) -> None:
    """Make a folder just enough of a rootfs to be taken for one."""
    program = rootfs / "usr" / "bin" / "env"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)


class Workshop:
    """A store, and a short way to put guests into it."""

    def __init__(self, folder: Path) -> None:
        self.folders: Directories = directories({"HOME": str(folder)})
        self.store = GuestStore(self.folders)

    @property
    def guests(self) -> Path:
        return self.folders.guests

    def entries(self) -> list[str]:
        """Return everything in the store's folder, hidden or not."""
        return sorted(entry.name for entry in self.guests.iterdir())

    def commit(self, stage: Stage) -> Guest:
        return self.store.commit(stage, GuestRecord(name=stage.name, source="a test"))

    def make(self, name: str) -> Guest:
        with self.store.reserve(name) as stage:
            fill(stage.rootfs)
            return self.commit(stage)
