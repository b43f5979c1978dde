# SPDX-License-Identifier: GPL-3.0-or-later
"""The cache of packages: what is offered to apt, what is kept, what makes way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from droiddeck_session.guest.archives import keep, offer
from droiddeck_session.guest.packages import Package

if TYPE_CHECKING:
    from pathlib import Path


def fetched(rootfs: Path, *names: str) -> None:
    """Put archives and apt's other leavings where apt puts them."""
    archives = rootfs / "var/cache/apt/archives"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    (archives / "lock").touch()
    (rootfs / "var/cache/apt/pkgcache.bin").touch()
    for name in names:
        (archives / name).write_text(name)


def debs(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.deb"))


def test_installed_archives_are_kept_with_a_record_of_their_versions(tmp_path: Path) -> None:
    rootfs, cache = tmp_path / "rootfs", tmp_path / "cache" / "apt"
    fetched(rootfs, "apt_3.0.4_amd64.deb", "login_1%3a4.16.0-2_amd64.deb", "stray_1_all.deb")
    keep(
        cache,
        rootfs,
        (Package(name="apt", version="3.0.4", arch="amd64"), Package(name="login", version="1:4.16.0-2", arch="amd64")),
    )
    assert debs(cache) == ["apt_3.0.4_amd64.deb", "login_1%3a4.16.0-2_amd64.deb"]
    record = json.loads((cache / "packages.json").read_text())
    assert record == {"schema": 1, "packages": {"apt:amd64": "3.0.4", "login:amd64": "1:4.16.0-2"}}
    assert sorted(path.name for path in rootfs.rglob("*") if path.is_file()) == []
    assert sorted(path.name for path in cache.iterdir() if path.suffix != ".deb") == ["packages.json"]


def test_an_older_version_makes_way_and_other_packages_stay(tmp_path: Path) -> None:
    rootfs, cache = tmp_path / "rootfs", tmp_path / "cache"
    cache.mkdir()
    for name in ("apt_3.0.3_amd64.deb", "apt_3.0.3_arm64.deb", "vim_9_amd64.deb"):
        (cache / name).touch()
    fetched(rootfs, "apt_3.0.4_amd64.deb")
    keep(cache, rootfs, (Package(name="apt", version="3.0.4", arch="amd64"),))
    assert debs(cache) == ["apt_3.0.3_arm64.deb", "apt_3.0.4_amd64.deb", "vim_9_amd64.deb"]


def test_what_was_offered_and_used_is_still_there_afterwards(tmp_path: Path) -> None:
    rootfs, cache = tmp_path / "rootfs", tmp_path / "cache"
    cache.mkdir()
    (cache / "apt_3.0.4_amd64.deb").write_text("an archive")
    offer(cache, rootfs)
    assert (rootfs / "var/cache/apt/archives/apt_3.0.4_amd64.deb").read_text() == "an archive"
    keep(cache, rootfs, (Package(name="apt", version="3.0.4", arch="amd64"),))
    assert (cache / "apt_3.0.4_amd64.deb").read_text() == "an archive"
    assert debs(rootfs / "var/cache/apt/archives") == []


def test_an_empty_cache_offers_nothing(tmp_path: Path) -> None:
    offer(tmp_path / "missing", tmp_path / "rootfs")
    assert list((tmp_path / "rootfs/var/cache/apt/archives").iterdir()) == []


def test_names_that_are_no_archives_of_apt_do_no_harm(tmp_path: Path) -> None:
    rootfs, cache = tmp_path / "rootfs", tmp_path / "cache"
    cache.mkdir()
    for name in (".deb", "x.deb", "a_b.deb", "a_1_b_c.deb"):
        (cache / name).touch()
    fetched(rootfs)
    keep(cache, rootfs, ())
    assert {"a_1_b_c.deb", "a_b.deb", "x.deb"} <= set(debs(cache))
