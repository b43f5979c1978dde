# SPDX-License-Identifier: GPL-3.0-or-later
"""What `verify` tells of the programs that it starts."""

from __future__ import annotations

import re
import subprocess
import sys

from conftest import ROOT

PROGRAMS = ROOT / "droiddeck_session" / "guest" / "programs"
OWN_NUMBER = "import os, verify_exec; print(verify_exec.in_child(lambda: f'{os.getpid()} letters'))"


def test_a_number_in_an_answer_stays_even_where_it_is_the_childs_own() -> None:
    """The word of the longest length has 131,071 letters; to a child numbered 1310 that once was another answer."""
    done = subprocess.run(
        [sys.executable, "-c", OWN_NUMBER], cwd=PROGRAMS, capture_output=True, text=True, timeout=30, check=True
    )
    assert re.fullmatch(r"'\d+ letters'\n", done.stdout)
