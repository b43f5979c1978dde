# SPDX-License-Identifier: GPL-3.0-or-later
"""The scratch folder of a probe: what a killed one left is cleared, what another one uses is not."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from supervised import carriers

from droiddeck_session.backends.scratch import clear_leftovers, probe_scratch

# A probe that has laid out its ground and started a program, and waits.
PROBE = """\
import subprocess, sys, time
from droiddeck_session.backends.confinement import lay_out
from droiddeck_session.backends.scratch import probe_scratch
with probe_scratch() as folder:
    (folder / "name").mkdir()
    ground = lay_out(str(folder / "name"), sys.executable)
    subprocess.Popen(["sleep", "600"], env={"DROIDDECK_SESSION": ground.token}, start_new_session=True)
    print(folder, ground.token, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _folders_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_the_next_probe_clears_what_a_killed_one_left_and_not_what_another_one_uses() -> None:
    with subprocess.Popen([sys.executable, "-c", PROBE], stdout=subprocess.PIPE) as probe:
        assert probe.stdout is not None
        name, token = probe.stdout.readline().decode().split()
        try:
            clear_leftovers()
            assert carriers(f"DROIDDECK_SESSION={token}")
            probe.kill()
            probe.wait()
            assert carriers(f"DROIDDECK_SESSION={token}")
            with probe_scratch() as folder:
                assert carriers(f"DROIDDECK_SESSION={token}") == []
                assert not Path(name).exists()
                assert os.listdir(folder.parent) == [folder.name]  # noqa: PTH208 - names alone
        finally:
            for pid in carriers(f"DROIDDECK_SESSION={token}"):
                os.kill(pid, signal.SIGKILL)
    assert not folder.exists()


def test_what_only_looks_like_a_leftover_stays(tmp_path: Path) -> None:
    place = tmp_path / "tmp"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").touch()
    (place / "droiddeck-probe-link").symlink_to(elsewhere)
    (place / "droiddeck-probe-without-lock").mkdir()
    (place / "droiddeck-probe-fifo").mkdir()
    os.mkfifo(place / "droiddeck-probe-fifo" / "lock.new")
    (place / f"droiddeck-probe-{secrets.token_hex(4)}").touch()
    before = sorted(place.iterdir())
    clear_leftovers()
    assert sorted(place.iterdir()) == before
    assert (elsewhere / "lock").exists()
