# SPDX-License-Identifier: GPL-3.0-or-later
"""The project under the Python of a Debian 13 guest (3.13): installed there by pip, its pure tests run there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT, cache_home, command_line

if TYPE_CHECKING:
    from conftest import CommandLine

pytestmark = [pytest.mark.real, pytest.mark.timeout(1500)]

TESTS = ("tests/unit/plan", "tests/unit/settings", "tests/unit/facts", "tests/unit/session", "tests/golden")
SCRIPT = """
set -e
cd /src
python3 -c 'import sys; assert sys.version_info[:2] == (3, 13), sys.version'
python3 -m venv /tmp/venv
/tmp/venv/bin/pip install --quiet /wheel/*.whl hypothesis pytest pytest-timeout
/tmp/venv/bin/droiddeck-session version
export HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis
exec /tmp/venv/bin/python -m pytest -q -p no:cacheprovider "$@"
"""


@pytest.fixture
def guest_cli(test_cache: Path, tmp_path: Path) -> CommandLine:
    """A command line with a guest that can make virtual environments, kept between runs."""
    cli = command_line(tmp_path, data=test_cache / f"data-python-{os.geteuid()}", cache=cache_home())
    if b"py313" not in cli("guest", "list").stdout.split():
        made = cli("guest", "create", "py313", "--suite", "trixie", "--include", "python3-venv", time_limit=600)
        assert made.returncode == 0, made.stderr.decode()
    return cli


def test_the_pure_tests_pass_under_python_3_13(guest_cli: CommandLine, tmp_path: Path) -> None:
    wheel = tmp_path / "wheel"
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheel), str(ROOT)]
    subprocess.run(build, check=True, timeout=300)
    # pip reaches its registry in the guest as it does here.
    pip = [f"--env={name}={value}" for name, value in os.environ.items() if name.startswith("PIP_")]
    binds = [f"--ro-bind={path}" for path in ("/etc/ssl/certs", "/etc/pip.conf") if Path(path).exists()]
    # Of a tracer's binds none is read-only.
    flags = [
        "--guest",
        "py313",
        "--backend",
        "bwrap",
        f"--ro-bind={ROOT}:/src",
        f"--ro-bind={wheel}:/wheel",
        *binds,
        *pip,
    ]
    ended = guest_cli("run", *flags, "--", "sh", "-c", SCRIPT, "sh", *TESTS, time_limit=900)
    assert ended.returncode == 0, ended.stdout.decode()[-3000:] + ended.stderr.decode()[-2000:]
