# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of C programs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from traced import SmallGuest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def guest(tmp_path: Path) -> SmallGuest:
    """A small guest of the test's own."""
    return SmallGuest(tmp_path)
