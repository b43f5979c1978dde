# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading dpkg's table of a rootfs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from droiddeck_session.guest.packages import Package, architecture, installed, versions

if TYPE_CHECKING:
    from pathlib import Path

STATUS = """\
Package: dpkg
Essential: yes
Status: install ok installed
Architecture: arm64
Multi-Arch: foreign
Version: 1.22.22
Description: Debian package management system
 Package: this is no field
 .
 Status: nor this

Package: libc6
Status: install ok installed
Architecture: arm64
Version: 2.41-12

Package: libc6
Status: install ok installed
Architecture: armhf
Version: 2.41-12+b1

Package: vim
Status: deinstall ok config-files
Architecture: arm64
Version: 2:9.1

Package: broken
Status: install ok installed
"""


def table(root: Path, text: str) -> None:
    status = root / "var" / "lib" / "dpkg" / "status"
    status.parent.mkdir(parents=True)
    status.write_text(text)


def test_what_is_installed_is_read_with_its_version(tmp_path: Path) -> None:
    table(tmp_path, STATUS)
    packages = installed(str(tmp_path))
    assert packages == (
        Package(name="dpkg", version="1.22.22", arch="arm64"),
        Package(name="libc6", version="2.41-12", arch="arm64"),
        Package(name="libc6", version="2.41-12+b1", arch="armhf"),
    )
    assert versions(packages) == {"dpkg": "1.22.22", "libc6": "2.41-12", "libc6:armhf": "2.41-12+b1"}
    assert architecture(packages) == "arm64"


def test_a_rootfs_that_is_no_debian_has_no_packages(tmp_path: Path) -> None:
    assert installed(str(tmp_path)) == ()
    assert architecture(()) is None


def test_the_table_of_the_host_is_never_read_through_a_link(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(STATUS)
    root = tmp_path / "root"
    status = root / "var" / "lib" / "dpkg" / "status"
    status.parent.mkdir(parents=True)
    status.symlink_to(secret)
    assert installed(str(root)) == ()


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    table(tmp_path, "")
    (tmp_path / "var/lib/dpkg/status").write_bytes(b"\xff\0\n: \n\nPackage\n" + STATUS.encode())
    assert len(installed(str(tmp_path))) == 3
