# SPDX-License-Identifier: GPL-3.0-or-later
"""session.log: JSON lines, warnings in plain text on stderr, and structlog only when there is something to say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from droiddeck_session.session.log import SessionLog

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_lines_go_to_the_file_and_warnings_to_the_person(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = SessionLog(tmp_path / "session.log", "id")
    log.info("bind left out", host="/dev/dri\udcff")
    log.warning("something is odd")
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "session.log").read_text().splitlines()]
    assert [(line["level"], line["event"], line["session"]) for line in lines] == [
        ("info", "bind left out", "id"), ("warning", "something is odd", "id"),
    ]  # fmt: skip
    assert capfd.readouterr() == ("", "droiddeck-session: something is odd\n")


def test_a_full_disk_or_a_lost_terminal_does_not_end_a_session(tmp_path: Path) -> None:
    log = SessionLog(tmp_path / "session.log", "id")
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, log._file)
    os.close(full)
    log.info("lost")
    log.close()
    assert (tmp_path / "session.log").read_bytes() == b""


def test_the_supervisor_does_not_import_structlog_until_it_says_something() -> None:
    code = "import sys, droiddeck_session.session.supervisor; sys.exit('structlog' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
