# SPDX-License-Identifier: GPL-3.0-or-later
"""The cache of downloaded packages: `apt/SUITE-ARCH/` in the cache folder, with their versions in `packages.json`.

A rootfs in the making is given the archives before apt runs; apt takes those that are what the archive's signed index
says. Afterwards the ones that were installed are kept, one version of each package.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from droiddeck_session.guest.packages import Package

RECORD: Final = "packages.json"
_APT_CACHE: Final = "var/cache/apt"


def offer(cache: Path, rootfs: Path) -> None:
    """Give an empty rootfs the archives of the cache, as links where both are on one disk."""
    archives = rootfs / _APT_CACHE / "archives"
    archives.mkdir(parents=True)
    for archive in cache.glob("*.deb"):
        # Another process may be replacing it by a newer version; apt then fetches that.
        with contextlib.suppress(FileNotFoundError):
            _share(archive, archives / archive.name)


def keep(cache: Path, rootfs: Path, packages: Iterable[Package]) -> None:
    """Move the archives of installed packages from a fresh rootfs to the cache, and empty the rootfs's own cache.

    Args:
        cache: folder of this suite and architecture; it is made.
        rootfs: made by us a moment ago; nothing else has written to it.
        packages: what is installed in it.
    """
    cache.mkdir(parents=True, exist_ok=True)
    current = {(package.name, package.arch): package.version for package in packages}
    for archive in sorted((rootfs / _APT_CACHE / "archives").glob("*.deb")):
        name, version, arch = _fields(archive)
        if current.get((name, arch)) == version:
            _move(archive, cache / archive.name)
    for archive in sorted(cache.glob("*.deb")):
        name, version, arch = _fields(archive)
        if current.get((name, arch), version) != version:
            archive.unlink(missing_ok=True)
    _record(cache)
    for leftover in _entries(rootfs / _APT_CACHE):
        leftover.unlink()


def _entries(apt_cache: Path) -> Iterator[Path]:
    yield from apt_cache.glob("*.bin")
    yield from apt_cache.glob("archives/*.deb")
    yield from apt_cache.glob("archives/lock")


def _fields(archive: Path) -> tuple[str, str, str]:
    """Return name, version and architecture from `NAME_VERSION_ARCH.deb`, as apt names its archives."""
    name, version, arch = [*archive.stem.split("_", 2), "", ""][:3]
    return name, unquote(version), arch


def _share(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK}:
            raise
        shutil.copyfile(source, target)


def _move(source: Path, target: Path) -> None:
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        arriving = target.with_name(f".{target.name}.{os.getpid()}")
        shutil.copyfile(source, arriving)
        arriving.replace(target)


def _record(cache: Path) -> None:
    """Write packages.json: which versions the cache holds."""
    versions = {f"{name}:{arch}": version for name, version, arch in map(_fields, sorted(cache.glob("*.deb")))}
    arriving = cache / f".{RECORD}.{os.getpid()}"
    with arriving.open("w", encoding="utf-8") as file:
        json.dump({"schema": 1, "packages": versions}, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    arriving.replace(cache / RECORD)
