# SPDX-License-Identifier: GPL-3.0-or-later
"""session.log: JSON lines of structlog's, warnings told at once, and no import before the program runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from supervised import until

from droiddeck_session.session.log import SessionLog
from droiddeck_session.session.signals import ENDING, RELAYED


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "session.log").read_text().splitlines()]


@pytest.mark.parametrize("in_thread", [True, False])
def test_lines_go_to_the_file_in_order_and_warnings_to_the_person_at_once(tmp_path: Path, *, in_thread: bool) -> None:
    told: list[str] = []
    log = SessionLog(tmp_path / "session.log", "id", told.append)
    log.info("bind.left_out", host="/dev/dri\udcff")
    log.warning("something is odd")
    assert told == ["something is odd"]
    if in_thread:
        log.write_from_now_on()
        until(lambda: len(lines(tmp_path)) == 2, "what waited is written while the session runs")
    log.error("session.failed", code="GUEST_EXIT")
    log.close()
    assert [(line["level"], line["event"], line["session"]) for line in lines(tmp_path)] == [
        ("info", "bind.left_out", "id"), ("warning", "something is odd", "id"), ("error", "session.failed", "id"),
    ]  # fmt: skip
    assert lines(tmp_path)[0]["host"] == "/dev/dri\udcff"
    times = [line["timestamp"] for line in lines(tmp_path)]
    assert times == sorted(times)


def test_a_full_disk_or_a_lost_terminal_does_not_end_a_session(tmp_path: Path) -> None:
    def lost(_text: str) -> None:
        raise OSError(5, "Input/output error")

    log = SessionLog(tmp_path / "session.log", "id", lost)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, log._file)
    os.close(full)
    log.warning("lost")
    log.close()
    assert (tmp_path / "session.log").read_bytes() == b""


def test_the_writing_thread_takes_no_signal_from_the_main_one(tmp_path: Path) -> None:
    log = SessionLog(tmp_path / "session.log", "id", print)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    log.write_from_now_on()
    assert log._writer is not None
    status = Path(f"/proc/self/task/{log._writer.native_id}/status").read_text()
    log.close()
    blocked = int(next(line for line in status.splitlines() if line.startswith("SigBlk:")).split()[1], 16)
    assert all(blocked >> (signum - 1) & 1 for signum in ENDING | RELAYED | {signal.SIGCHLD})
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_start_does_not_import_structlog() -> None:
    code = "import sys, droiddeck_session.session.launch; sys.exit('structlog' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_the_log_does_without_rich_and_does_not_keep_it_from_others(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from droiddeck_session.session.log import SessionLog\n"
        "log = SessionLog(Path(sys.argv[1]), 'id', print); log.info('line'); log.close()\n"
        "assert 'structlog' in sys.modules and 'rich' not in sys.modules\n"
        "import rich\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "session.log"], check=True, timeout=30)
    assert [line["event"] for line in lines(tmp_path)] == ["line"]
