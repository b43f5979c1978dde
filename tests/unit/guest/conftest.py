# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the guests' tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from guest_trees import Workshop

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)
