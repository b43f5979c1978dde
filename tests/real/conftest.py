# SPDX-License-Identifier: GPL-3.0-or-later
"""What real tests share: a copy of the guest that a stranger can reach, and each backend's probe for each person."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from backend_stage import ALL, Stage
from backend_trials import BACKENDS, PEOPLE, open_folder, probe, reachable_parts
from supervised import end_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from droiddeck_session.plan.capabilities import Capabilities


@pytest.fixture(scope="session")
def rootfs(demo_root: Path) -> Iterator[Path]:
    """A copy of the guest that a stranger can reach."""
    with open_folder() as folder:
        subprocess.run(["cp", "-a", "--reflink=auto", demo_root, folder / "rootfs"], check=True)
        yield folder / "rootfs"


@pytest.fixture(scope="session")
def probed() -> Iterator[dict[tuple[str, str], Capabilities]]:
    """Each backend's real probe, for each person; no supervisor outlives its test."""
    with reachable_parts():
        yield {(name, who): probe(BACKENDS[name](), PEOPLE[who]) for name, who in ALL}


@pytest.fixture
def stage(request: pytest.FixtureRequest, rootfs: Path, probed: dict[tuple[str, str], Capabilities]) -> Iterator[Stage]:
    name, who = request.param
    capabilities = probed[name, who]
    assert capabilities.available, f"{name} as {who}: {capabilities.why_not}"
    with open_folder(PEOPLE[who]) as session:
        yield Stage(BACKENDS[name](), capabilities, PEOPLE[who], rootfs, session)


@pytest.fixture(autouse=True)
def _no_supervisor_is_left() -> Iterator[None]:
    yield
    end_all()
