# SPDX-License-Identifier: GPL-3.0-or-later
"""The tracer's man page: well formed, and it names every option and variable that there is and no other."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from traced import ENVIRON, TRACER

from droiddeck_proot.options import known_options

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "man" / "droiddeck-tracer.1"
TEXT = PAGE.read_text()


def section(title: str) -> str:
    return TEXT.partition(f".Sh {title}\n")[2].partition("\n.Sh ")[0]


def test_every_option_and_no_other_is_documented() -> None:
    told = subprocess.run([TRACER, "--help"], capture_output=True, text=True, timeout=60, env=ENVIRON, check=True)
    listed = re.findall(r"^\.It (.*)$", section("OPTIONS"), re.MULTILINE)
    documented = {name for line in listed for name in re.findall(r"Fl (?:Fl )?([a-zA-Z0-9-]+)", line)}
    assert documented == set(known_options(told.stdout))


def test_every_variable_and_no_other_is_documented() -> None:
    known = set(
        re.findall(r'^#define DD_ENV_\w+ "(\w+)"$', (ROOT / "backends/fastpath/abi.h").read_text(), re.MULTILINE)
    )
    assert set(re.findall(r"^\.It Ev (\w+)$", section("ENVIRONMENT"), re.MULTILINE)) == known


def test_the_page_is_formatted_without_a_warning() -> None:
    done = subprocess.run(
        ["groff", "-mdoc", "-Tutf8", "-ww", "-Kutf8", PAGE], capture_output=True, text=True, timeout=50, check=True
    )
    assert done.stderr == ""
    assert "As env(1):" in re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
