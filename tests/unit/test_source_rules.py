# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that every source file keeps and that no linter knows: licence line, size, no path of one machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST_MODULE = 400
# Folders that hold sources; what is generated or installed lies elsewhere.
FOLDERS = (
    ".ci",
    "backends",
    "completions",
    "config",
    "docs",
    "droiddeck_session",
    "man",
    "systemd",
    "tests",
)
WITHOUT_LICENCE_LINE = frozenset({".md", ".json"})
# A work folder, home or Python of whoever wrote the line.
OF_ONE_MACHINE = re.compile(r"/(?:work|root/\.pyenv|tmp/w)/|/home/tester\b|/\.pyenv/versions/")


def sources() -> list[Path]:
    """Return all files of the project that a person wrote, relative to its top."""
    found = [path for path in ROOT.iterdir() if path.is_file() and path.name not in {"LICENSE", ".gitignore"}]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sorted(path.relative_to(ROOT) for path in found)


def is_text(path: Path) -> bool:
    return b"\0" not in (ROOT / path).read_bytes()[:4096]


SOURCES = [path for path in sources() if is_text(path)]


@pytest.mark.parametrize("path", [path for path in SOURCES if path.suffix not in WITHOUT_LICENCE_LINE], ids=str)
def test_a_source_names_its_licence_at_its_top(path: Path) -> None:
    top = (ROOT / path).read_text(errors="surrogateescape").splitlines()[:3]
    assert any("SPDX-License-Identifier: GPL-3.0-or-later" in line for line in top)


@pytest.mark.parametrize("path", [path for path in SOURCES if path.suffix == ".py"], ids=str)
def test_a_module_is_not_too_long(path: Path) -> None:
    length = len((ROOT / path).read_text().splitlines())
    assert length <= LONGEST_MODULE


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_a_source_names_no_folder_of_one_machine(path: Path) -> None:
    if (ROOT / path) == Path(__file__):
        return
    text = (ROOT / path).read_text(errors="surrogateescape")
    assert OF_ONE_MACHINE.findall(text) == []


def scripts() -> list[Path]:
    """Return the files that a Bourne shell runs, told by their first line."""
    first_lines = {path: (ROOT / path).read_bytes().split(b"\n", 1)[0] for path in SOURCES}
    return [path for path, line in first_lines.items() if re.match(rb"#!.*\b(?:ba|da)?sh\b", line)]


def test_dev_and_ci_run_are_scripts_that_can_be_run() -> None:
    assert {Path("dev"), Path(".ci/run")} <= set(scripts())
    assert [path for path in scripts() if not (ROOT / path).stat().st_mode & 0o111] == []


def test_every_script_is_one_that_lint_checks() -> None:
    checked = subprocess.run(
        ["bash", "-c", "source ./dev help >/dev/null; printf '%s\\n' \"${scripts[@]}\""],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip
    assert {str(ROOT / path) for path in scripts()} <= set(checked)
