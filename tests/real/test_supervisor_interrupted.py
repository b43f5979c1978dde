# SPDX-License-Identifier: GPL-3.0-or-later
"""A request to end while a backend is probed: nothing of the probe stays behind."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from supervised import running, until

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine

pytestmark = pytest.mark.real

HANGS_IN_A_TRIAL = f'[ "$1" = --help ] && exec {shutil.which("proot")} "$@"'


@pytest.mark.parametrize("hangs", [HANGS_IN_A_TRIAL, ""], ids=["trial", "help"])
@pytest.mark.parametrize(
    "signals",
    [(signal.SIGTERM,), (signal.SIGHUP,), (signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM, signal.SIGHUP)],
    ids=lambda signals: " ".join(signum.name for signum in signals),
)
def test_an_interrupted_probe_leaves_nothing(
    cli: CommandLine, tmp_path: Path, signals: tuple[signal.Signals, ...], hangs: str
) -> None:
    program, up, scratch = tmp_path / "proot", tmp_path / "up", tmp_path / "scratch"
    length = f"600.{secrets.randbelow(10**9)}"
    # What is asked for `--help` alone has no marker to be found by; it stays in its group.
    other = "setsid" if hangs else ""
    program.write_text(f"#!/bin/sh\n{hangs}\n{other} sleep {length} &\necho up > {up}\nexec sleep {length}\n")
    program.chmod(0o755)
    scratch.mkdir()
    own = {"DROIDDECK_BACKEND_PROOT": str(program), "TMPDIR": str(scratch), "XDG_CACHE_HOME": str(tmp_path / "fresh")}
    argv = cli.argv("run", "--backend", "proot", "--", "true")
    with subprocess.Popen(argv, env={**cli.environ, **own}, stderr=subprocess.PIPE) as process:
        until(lambda: up.exists() and len(running("sleep", length)) == 2, "the probe hangs")
        for signum in signals:
            process.send_signal(signum)
        _, told = process.communicate(timeout=40)
    # Of several that come at once the kernel delivers the lowest first.
    assert process.returncode in {128 + signum for signum in signals}
    assert b"Traceback" not in told
    try:
        until(lambda: not running("sleep", length), "nothing of the probe runs", 10)
    finally:
        for pid in running("sleep", length):
            os.kill(pid, signal.SIGKILL)
    assert list(scratch.iterdir()) == []
    assert cli.sessions() == []


def test_what_a_killed_probe_left_is_cleared_by_the_next(cli: CommandLine, tmp_path: Path) -> None:
    program, up, scratch = tmp_path / "proot", tmp_path / "up", tmp_path / "scratch"
    length = f"600.{secrets.randbelow(10**9)}"
    program.write_text(f"#!/bin/sh\n{HANGS_IN_A_TRIAL}\nsetsid sleep {length} &\necho up > {up}\nexec sleep {length}\n")
    program.chmod(0o755)
    scratch.mkdir()
    own = {"DROIDDECK_BACKEND_PROOT": str(program), "TMPDIR": str(scratch), "XDG_CACHE_HOME": str(tmp_path / "fresh")}
    with subprocess.Popen(cli.argv("run", "--backend", "proot", "--", "true"), env={**cli.environ, **own}) as process:
        until(lambda: up.exists() and len(running("sleep", length)) == 2, "the probe hangs")
        process.kill()
    assert len(running("sleep", length)) == 2
    try:
        assert cli("run", "--backend", "bwrap", "--", "true", env=own).returncode == 0
        assert running("sleep", length) == []
    finally:
        for pid in running("sleep", length):
            os.kill(pid, signal.SIGKILL)
    assert list(scratch.iterdir()) == []
