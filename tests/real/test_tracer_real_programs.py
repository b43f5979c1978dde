# SPDX-License-Identifier: GPL-3.0-or-later
"""Compilers, version control, archivers, servers and package managers: under the tracer as in the kernel's truth."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from guest_scripts import SCRIPTS
from program_guests import described, program_root, run_script

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
SUITES = ["trixie", *(pytest.param(suite, marks=pytest.mark.long) for suite in ("bookworm", "sid"))]


@pytest.fixture(scope="module", params=SUITES)
def programs(request: pytest.FixtureRequest, test_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program_root(test_cache, tmp_path_factory.mktemp("programs"), request.param)


# Without root the truth is a user namespace of one id, in which no file can be given to another.
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="dpkg gives files away, for which root is needed")
NAMES = [pytest.param(name, marks=NEEDS_ROOT) if name == "dpkg" else name for name in SCRIPTS]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_prints_and_leaves_what_it_does_without_the_tracer(
    cli: CommandLine, programs: Path, tmp_path: Path, name: str
) -> None:
    # One path for both: what a program leaves may name it.
    truth = run_script(cli, programs, "chroot", SCRIPTS[name], tmp_path / "folder")
    assert (truth.status, bool(truth.lines)) == (0, True), truth
    assert run_script(cli, programs, "fastpath", SCRIPTS[name], tmp_path / "folder") == truth


# Packages with users, alternatives, triggers and configuration files.
INSTALL = """
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq --no-install-recommends dbus vim-tiny rsync sqlite3 locales >/dev/null
dpkg --audit
dpkg --verify
update-alternatives --query vi | grep ^Value
sqlite3 :memory: 'select 6 * 7'
apt-get purge -qq rsync >/dev/null
getent passwd messagebus
"""
# Logs and caches have times, numbers of inodes and lists from the network in them; `-` is a backup of the same.
OF_THE_MOMENT = ("var/log", "var/cache", "var/lib/apt", "var/lib/dbus", "etc/machine-id", "tmp", "run")


def left_in(root: Path, since: float) -> list[str]:
    return [line for line in described(root, since=since) if not line.startswith(OF_THE_MOMENT)]


@NEEDS_ROOT
@pytest.mark.parametrize("backends", [("chroot", "fastpath")])
def test_apt_installs_and_purges_as_without_the_tracer(
    cli: CommandLine, demo_root: Path, tmp_path: Path, backends: tuple[str, str]
) -> None:
    ended = []
    for backend in backends:
        root = tmp_path / backend
        subprocess.run(["cp", "-a", "--reflink=auto", demo_root, root], check=True)
        start = time.time()
        done = cli("run", "--guest", str(root), "--backend", backend, "--", "/bin/bash", "-c", INSTALL, time_limit=280)
        assert done.returncode == 0, done.stderr.decode()
        ended.append((os.fsdecode(done.stdout).splitlines(), left_in(root, start - 60)))
        shutil.rmtree(root)
    assert ended[0][0]
    assert ended[1] == ended[0]
