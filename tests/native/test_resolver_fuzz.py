# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolver on a synthetic file system: its laws hold for any input; libFuzzer looks for more where clang has it."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from resolver_drivers import FASTPATH, SANITIZED, built

if TYPE_CHECKING:
    from pathlib import Path


def test_random_inputs_break_no_law_and_no_bound() -> None:
    subprocess.run([built("fuzz_resolver", *SANITIZED, "-DREPLAY")], check=True, timeout=50)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("clang") is None, reason="libFuzzer comes with clang")
def test_libfuzzer_breaks_no_law_and_no_bound(tmp_path: Path) -> None:
    names = ["view.c", "walk.c", "components.c", "guest_name.c", "proc_links.c"]
    sources = [FASTPATH / "tests" / "fuzz_resolver.c", *(FASTPATH / "resolver" / name for name in names)]
    flags = ["-std=c11", "-g", "-O1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    clang: list[str | Path] = ["clang", *flags, "-o", tmp_path / "fuzz", *sources]
    subprocess.run(clang, check=True, timeout=120)
    (tmp_path / "corpus").mkdir()
    command: list[str | Path] = [
        tmp_path / "fuzz",
        "-max_len=600",
        "-max_total_time=120",
        f"-artifact_prefix={tmp_path}/",
        tmp_path / "corpus",
    ]
    subprocess.run(command, check=True, timeout=240)
