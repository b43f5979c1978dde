# SPDX-License-Identifier: GPL-3.0-or-later
"""What all tests share: a real Debian guest, built once per cache, and the command line in folders of its own."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

# A caller that ignores these (a script in the background, nohup) must not decide for the programs of the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
ROOT = Path(__file__).parent.parent
# What the guest of the tests holds; a change makes a new one. `guest create` is itself under test elsewhere.
GUEST_RECIPE = ("--suite", "trixie")


@dataclass
class CommandLine:
    """The real `droiddeck-session` as a user starts it, with XDG folders of its own."""

    environ: dict[str, str]
    folders: dict[str, Path] = field(default_factory=dict)

    def argv(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "droiddeck_session", *arguments]

    def __call__(
        self,
        *arguments: str,
        stdin: bytes = b"",
        env: dict[str, str] | None = None,
        time_limit: float = 50,
        cwd: str | Path | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one command line to its end and return status, stdout and stderr."""
        return subprocess.run(
            self.argv(*arguments),
            input=stdin,
            capture_output=True,
            env={**self.environ, **(env or {})},
            timeout=time_limit,
            cwd=cwd,
            check=False,
        )

    def sessions(self) -> list[Path]:
        """Return the session folders, oldest first."""
        folder = self.folders["state"] / "droiddeck-session" / "sessions"
        return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.exists() else []


def cache_home() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def command_line(folder: Path, *, data: Path, cache: Path) -> CommandLine:
    folders = {
        "config": folder / "config",
        "state": folder / "state",
        "data": data,
        "cache": cache,
        "home": folder / "home",
    }
    for path in folders.values():
        path.mkdir(parents=True, exist_ok=True)
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(ROOT), *(str(ROOT / "backends" / name) for name in ("proot", "fastpath"))]),
        "HOME": str(folders["home"]),
        "LANG": "C.UTF-8",
        **{f"XDG_{name.upper()}_HOME": str(folders[name]) for name in ("config", "state", "data", "cache")},
    }
    return CommandLine(environ=environ, folders=folders)


@pytest.fixture(scope="session")
def test_cache() -> Path:
    """Downloads and guests of the tests; kept between runs."""
    folder = cache_home() / "droiddeck-session" / "tests"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def guest_data(test_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder (XDG_DATA_HOME) that holds the guest `demo`, made by `guest create`."""
    recipe = hashlib.sha256(repr((GUEST_RECIPE, os.geteuid())).encode()).hexdigest()[:12]
    data = test_cache / f"data-{recipe}"
    cli = command_line(tmp_path_factory.mktemp("create"), data=data, cache=cache_home())
    listed = cli("guest", "list")
    if b"demo" not in listed.stdout.split():
        made = cli("guest", "create", "demo", *GUEST_RECIPE, time_limit=600)
        assert made.returncode == 0, made.stderr.decode()
    return data


@pytest.fixture(scope="session")
def demo_root(guest_data: Path) -> Path:
    """The rootfs of the guest `demo`: a real Debian. Tests leave nothing in it."""
    return guest_data / "droiddeck-session" / "guests" / "demo" / "rootfs"


@pytest.fixture(scope="session")
def probe_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for the backends' probes, fresh in each test run."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def cli(tmp_path: Path, guest_data: Path, probe_cache: Path) -> CommandLine:
    """The command line with the guest `demo` and with state and settings of this test's own."""
    return command_line(tmp_path, data=guest_data, cache=probe_cache)


@pytest.fixture
def bare_cli(tmp_path: Path) -> CommandLine:
    """The command line on a machine that has no guest yet."""
    return command_line(tmp_path, data=tmp_path / "data", cache=tmp_path / "cache")
