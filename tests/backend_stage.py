# SPDX-License-Identifier: GPL-3.0-or-later
"""A stage for each backend and person: the real guest, a session folder, and what is seen of binds from inside."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from backend_trials import PEOPLE, Person, make_plan, run

if TYPE_CHECKING:
    import subprocess

    from droiddeck_session.backends.interface import Backend
    from droiddeck_session.plan.capabilities import Capabilities
    from droiddeck_session.plan.model import Bind, Plan

ROOTED = [(name, who) for name in ("bwrap", "chroot", "fastpath", "proot") for who in PEOPLE]
ALL = [("direct", "caller"), *ROOTED]


@dataclass(frozen=True)
class Stage:
    """One backend, one person, the guest, and a session folder."""

    backend: Backend
    capabilities: Capabilities
    person: Person
    root: Path
    session: Path

    def folder(self, name: str, *files: str) -> Path:
        """Make a host folder with files that hold their own names."""
        made = self.session / name
        made.mkdir()
        for file in files:
            (made / file).parent.mkdir(parents=True, exist_ok=True)
            (made / file).write_bytes(os.fsencode(f"{name}/{file}"))
        for path in (made, *made.rglob("*")):
            os.chown(path, self.person.uid, self.person.gid)
        return made

    def plan(self, *argv: str, **options: object) -> Plan:
        root = self.root if self.capabilities.rootfs else Path("/")
        return make_plan(root, argv, session=self.session, person=self.person, **options)  # type: ignore[arg-type]

    def run(self, *argv: str, **options: object) -> subprocess.CompletedProcess[bytes]:
        return run(self.backend, self.capabilities, self.plan(*argv, **options), self.person)

    def output(self, *argv: str, **options: object) -> str:
        done = self.run(*argv, **options)
        assert done.returncode == 0, done.stderr.decode()
        return os.fsdecode(done.stdout)


def on(pairs: list[tuple[str, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("stage", pairs, indirect=True, ids=[f"{name}-{who}" for name, who in pairs])


def identity(path: Path) -> str:
    found = path.stat()
    return f"{found.st_dev} {found.st_ino}"


def seen(stage: Stage, binds: list[Bind], *paths: str) -> list[str]:
    """Device and inode of guest paths, as stat(1) in the guest has them."""
    # newfstatat: coreutils' stat asks by statx, which some proot builds resolve on the host; that is its own test.
    program = "import os, sys\nfor path in sys.argv[1:]:\n s = os.stat(path)\n print(s.st_dev, s.st_ino)"
    return stage.output("/usr/bin/python3", "-c", program, *paths, binds=binds).splitlines()
