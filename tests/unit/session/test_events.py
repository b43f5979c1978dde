# SPDX-License-Identifier: GPL-3.0-or-later
"""The event file: whole lines, a clock that never goes back, and no session lost to a full disk."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from droiddeck_session.session.events import EventLog, read_events

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


@given(name=st.text(), value=st.text())
def test_any_text_is_one_line_and_comes_back(tmp_path_factory: pytest.TempPathFactory, name: str, value: str) -> None:
    path = tmp_path_factory.mktemp("events") / "events.jsonl"
    log = EventLog(path, "id")
    log.emit("one.event", text=value, other=name + "\udcff")
    log.close()
    (line,) = path.read_bytes().splitlines()
    event = json.loads(line)
    assert list(event)[:3] == ["t", "event", "session"]
    assert (event["event"], event["session"], event["text"]) == ("one.event", "id", value)


def test_time_never_goes_back_even_over_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.jsonl"
    for now in (5_000_000_000, 3_000_000_000, 9_000_000_000):
        monkeypatch.setattr(time, "time_ns", lambda now=now: now)
        log = EventLog(path, "id")
        log.emit("tick")
        log.close()
    assert [event["t"] for event in read_events(path)] == [5000, 5000, 9000]


def test_a_line_that_a_crash_cut_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"t": 1, "event": "whole", "session": "id"}\n{"t": 2, "ev')
    log = EventLog(path, "id")
    log.emit("next")
    log.close()
    assert [event["event"] for event in read_events(path)] == ["whole", "next"]
    assert len(path.read_bytes().splitlines()) == 2


def test_a_full_disk_costs_the_line_only(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl", "id")
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, log._file)
    os.close(full)
    log.emit("lost")
    log.close()
    assert (tmp_path / "events.jsonl").read_bytes() == b""
