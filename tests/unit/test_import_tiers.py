# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be imported where: every call pays for start-up, and in a guest for each path call of an import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What the light tier may load beside the standard library.
LIGHT = frozenset({"click", "droiddeck_session"})
# Python's own start-up and pip's editable installs put these in, whatever is imported.
OF_THE_INTERPRETER = frozenset({"__main__", "sitecustomize", "usercustomize", "_virtualenv", "_distutils_hack"})

GUEST_PROGRAMS = sorted((ROOT / "droiddeck_session" / "guest" / "programs").rglob("*.py"))
ENTERED_ALONE = [*GUEST_PROGRAMS, ROOT / "droiddeck_session" / "backends" / "chroot_enter.py"]


def foreign_modules(code: str) -> set[str]:
    """Return the top-level modules outside the standard library that a fresh Python has after running `code`."""
    ending = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"try:\n    {code}\nexcept SystemExit:\n    pass\n{ending}"],
        cwd=ROOT, capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = done.stderr.splitlines()[-1].split()
    known = sys.stdlib_module_names | OF_THE_INTERPRETER
    return {name for name in names if name not in known and not name.startswith(("__editable__", "_editable"))}


@pytest.mark.parametrize(
    "arguments",
    [[], ["--help"], ["--version"], ["version"], ["version", "--json"], ["completion", "bash"], ["status"], ["stop"]],
)
def test_a_light_verb_loads_click_and_the_standard_library(arguments: list[str]) -> None:
    assert foreign_modules(f"from droiddeck_session.cli.main import main; main({arguments!r})") <= LIGHT


@pytest.mark.parametrize("module", ["cli.main", "cli.output", "daemon.client", "errors", "paths", "processes"])
def test_a_light_module_loads_click_and_the_standard_library(module: str) -> None:
    assert foreign_modules(f"import droiddeck_session.{module}") <= LIGHT


def test_guest_programs_were_found() -> None:
    assert GUEST_PROGRAMS


@pytest.mark.parametrize("path", ENTERED_ALONE, ids=lambda path: path.name)
def test_what_runs_alone_imports_the_standard_library_only(path: Path) -> None:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    beside = {other.stem for other in path.parent.glob("*.py")}
    assert imported - beside <= sys.stdlib_module_names
