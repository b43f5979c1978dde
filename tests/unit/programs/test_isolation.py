# SPDX-License-Identifier: GPL-3.0-or-later
"""What a guest asks of its programs: an old Python, only cheap modules, nothing written, nothing of the host."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from droiddeck_session.plan import chain

PROGRAMS = Path(__file__).parents[3] / "droiddeck_session" / "guest" / "programs"
# The shortest run of each: a refusal, or nothing to do.
SHORTEST: dict[str, list[str]] = {
    "droiddeck_inner.py": [],
    "game_env.py": [],
    "stand_in_desktop.py": [],
    "stand_in_game.py": [],
    "stand_in_proton.py": [],
    "stand_in_reaper.py": [],
    "stand_in_steam.py": ["-shutdown"],
    "stand_in_web_helper.py": ["--none"],
}
# Those that `verify` runs import what they ask with; what that costs is no session's.
VERIFYING = sorted(path.name for path in PROGRAMS.glob("verify_*.py"))
CHEAP = "import __future__, errno, fcntl, os, select, signal, sys, time"
INTERPRETERS = tuple(dict.fromkeys(("/usr/bin/python3", sys.executable)))


def modules(interpreter: str, folder: Path, *words: str) -> set[str]:
    """Return the names of all modules that an isolated interpreter imports."""
    ended = subprocess.run(
        [interpreter, "-I", "-S", "-X", "importtime", *words],
        env={
            "XDG_RUNTIME_DIR": str(folder),
            "DROIDDECK_STAND_IN_GAME": "status=0",
            "DROIDDECK_STAND_IN_DESKTOP": "status=0",
        },
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "Traceback" not in ended.stderr
    assert ended.returncode in (0, 64, 125)
    lines = (line for line in ended.stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines}


def test_the_plan_puts_the_programs_where_they_look_for_each_other(layout: dict[str, str]) -> None:
    staged = [file for names in chain._STAND_INS.values() for file in chain._staged(names, mangoapp=False)]
    assert {file.path: file.program for file in staged} == {f"programs/{path}": name for path, name in layout.items()}


def test_every_program_is_looked_at() -> None:
    assert {path.name for path in PROGRAMS.glob("*.py")} == {*SHORTEST, *VERIFYING, "__init__.py"}


@pytest.mark.parametrize("interpreter", INTERPRETERS)
@pytest.mark.parametrize("name", SHORTEST)
def test_a_start_imports_only_the_cheapest_modules(tmp_path: Path, interpreter: str, name: str) -> None:
    cheapest = modules(interpreter, tmp_path, "-c", CHEAP)
    assert modules(interpreter, tmp_path, str(PROGRAMS / name), *SHORTEST[name]) <= cheapest


@pytest.mark.parametrize("name", SHORTEST)
def test_it_imports_nothing_but_the_standard_library(name: str) -> None:
    tree = ast.parse((PROGRAMS / name).read_text(encoding="utf-8"))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add((node.module or "").partition(".")[0])
    assert imported <= sys.stdlib_module_names


@pytest.mark.parametrize("name", [*SHORTEST, *VERIFYING])
def test_the_oldest_guests_python_can_read_it(name: str) -> None:
    ast.parse((PROGRAMS / name).read_text(encoding="utf-8"), feature_version=(3, 9))


@pytest.mark.parametrize("name", SHORTEST)
def test_it_starts_isolated_without_site_and_writes_no_bytecode(name: str) -> None:
    with (PROGRAMS / name).open(encoding="utf-8") as source:
        assert source.readline() == "#!/usr/bin/python3 -ISB\n"
    assert (PROGRAMS / name).stat().st_mode & 0o111 == 0o111
