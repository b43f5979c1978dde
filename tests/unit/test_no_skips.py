# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugin that makes a skipped test fail, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

SKIPPED = """
import pytest

def test_that_runs():
    pass

@pytest.mark.skipif(True, reason="no tracer here")
def test_that_is_marked():
    pass

def test_that_skips_itself():
    pytest.skip("no guest here")

@pytest.mark.xfail(reason="known")
def test_that_is_expected_to_fail():
    assert False
"""


def outcomes(folder: Path, text: str, *options: str) -> tuple[int, str]:
    (folder / "test_sample.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", folder, *options],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_a_skip_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    status, text = outcomes(tmp_path, SKIPPED, "-p", "plugins.no_skips")
    assert status == 1
    assert "1 failed, 1 passed, 1 xfailed, 1 error" in text
    assert "no tracer here" in text
    assert "no guest here" in text


def test_without_the_plugin_a_skip_is_a_skip(tmp_path: Path) -> None:
    status, text = outcomes(tmp_path, SKIPPED)
    assert (status, "1 passed, 2 skipped, 1 xfailed" in text) == (0, True)


@pytest.mark.parametrize(
    "line", ["pytest.skip('no kernel', allow_module_level=True)", "pytest.importorskip('no_such')"]
)
def test_a_skipped_module_is_an_error(tmp_path: Path, line: str) -> None:
    status, text = outcomes(tmp_path, f"import pytest\n{line}\n", "-p", "plugins.no_skips")
    assert status == 2
    assert "skipped where every test has to run" in text
