# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests with the programs that the tracer is tried with, made once per cache; and the same script in one twice."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conftest import cache_home, command_line

from droiddeck_session.guest import mirror

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import CommandLine

PACKAGES: Final = (
    "attr", "dbus", "gcc", "git", "libc6-dev", "make", "nodejs", "perl", "procps", "python3", "python3-venv", "rsync",
    "sqlite3", "xvfb",
)  # fmt: skip
# What is changed within so many seconds before a script's start is not told as changed long ago.
_RECENT: Final = 60


def program_root(test_cache: Path, folder: Path, suite: str) -> Path:
    """Return the rootfs of a guest of this suite that has all programs; tests leave nothing in it."""
    return made_guest(test_cache, folder, "programs", suite=suite, packages=PACKAGES)


def made_guest(test_cache: Path, folder: Path, name: str, *, suite: str, packages: tuple[str, ...]) -> Path:
    """Return the rootfs of a guest, made by mmdebstrap and taken in by `guest import` where the cache has none.

    Not by `guest create`, which trusts a clock: the lists of a suite that is still changing are valid for a week.
    """
    recipe = hashlib.sha256(repr((suite, packages, os.geteuid())).encode()).hexdigest()[:12]
    data = test_cache / f"{name}-{suite}-{recipe}"
    cli = command_line(folder, data=data, cache=cache_home())
    if name.encode() not in cli("guest", "list").stdout.split():
        archive = folder / "rootfs.tar"
        command = ["mmdebstrap", "--variant=minbase", "--format=tar", f"--include={','.join(packages)}"]
        command += ['--aptopt=Acquire::Languages "none"', '--aptopt=Acquire::Check-Valid-Until "false"']
        # The release alone: a mirror may be late with what comes after it.
        sources = mirror.sources(suite, mirror.require_keyring())[:1]
        subprocess.run([*command, suite, archive, *sources], check=True, capture_output=True, timeout=1800)
        taken = cli("guest", "import", str(archive), name, time_limit=600)
        assert taken.returncode == 0, taken.stderr.decode()
        archive.unlink()
    return data / "droiddeck-session" / "guests" / name / "rootfs"


@dataclass(frozen=True)
class Ended:
    """A script's end: what a comparison of two shows first comes first."""

    status: int
    lines: tuple[str, ...]
    errors: str
    left: tuple[str, ...]


def run_script(cli: CommandLine, root: Path, backend: str, script: str, folder: Path) -> Ended:
    """Run a script by bash in an empty folder, and tell how it ended and what it left there."""
    folder.mkdir()
    start = time.time()
    words = ("--bind", f"{folder}:/mnt", "--cwd", "/mnt", "--env", "HOME=/mnt", "--env", "TMPDIR=/mnt")
    done = cli(
        "run", "--guest", str(root), "--backend", backend, *words, "--env", "PYTHONDONTWRITEBYTECODE=1", "--",
        "/bin/bash", "-euc", script, time_limit=280,
    )  # fmt: skip
    left = tuple(described(folder, since=start - _RECENT))
    shutil.rmtree(folder)
    return Ended(done.returncode, tuple(os.fsdecode(done.stdout).splitlines()), os.fsdecode(done.stderr), left)


def described(folder: Path, *, since: float) -> Iterator[str]:
    """Yield a line for all that lies in a folder, by name: type, rights, links, content, attributes, old times."""
    for path in sorted(folder.rglob("*")):
        found = path.lstat()
        words = [str(path.relative_to(folder)), stat.filemode(found.st_mode), f"{found.st_uid}:{found.st_gid}"]
        if not path.is_dir() or path.is_symlink():
            words += [f"links {found.st_nlink}", f"size {found.st_size}"]
        if path.is_symlink():
            words.append(f"to {path.readlink()}")
        elif path.is_file():
            words.append(hashlib.sha256(path.read_bytes()).hexdigest()[:16])
        words += [f"{name}={os.getxattr(path, name, follow_symlinks=False)!r}" for name in attributes(path)]
        if found.st_mtime < since:
            words.append(f"of {found.st_mtime_ns}")
        yield " ".join(words)


def attributes(path: Path) -> list[str]:
    return sorted(name for name in os.listxattr(path, follow_symlinks=False) if not name.startswith("security."))
