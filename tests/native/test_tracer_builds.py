# SPDX-License-Identifier: GPL-3.0-or-later
"""The tracer built another way, with every access checked or against musl, passes the tests of the tracer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

THIS = Path(__file__)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("build", ["sanitized", pytest.param("musl", marks=pytest.mark.long)])
def test_every_test_of_the_tracer_passes_with_another_build(build: str) -> None:
    subprocess.run(["make", "--silent", build], cwd=ROOT, check=True, capture_output=True, timeout=200)
    others = sorted(path for path in THIS.parent.glob("test_tracer_*.py") if path != THIS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not long", "-p", "no:cacheprovider", *others],
        cwd=ROOT, env={**os.environ, "DROIDDECK_TEST_BUILD": build}, capture_output=True, text=True, timeout=280,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
