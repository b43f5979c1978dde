# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Debian packages a rootfs holds, from dpkg's own table (deb-control(5) stanzas in /var/lib/dpkg/status)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from droiddeck_session.rootfs import read_file

if TYPE_CHECKING:
    from collections.abc import Iterator

STATUS: Final = "/var/lib/dpkg/status"
_LARGEST: Final = 64 << 20
_INSTALLED: Final = "install ok installed"


@dataclass(frozen=True, kw_only=True)
class Package:
    """One installed package."""

    name: str
    version: str
    arch: str


def installed(root: str) -> tuple[Package, ...]:
    """Return the installed packages of a rootfs in dpkg's order; none where it is no Debian."""
    table = read_file(root, STATUS, limit=_LARGEST)
    return tuple(_packages(table.decode(errors="replace"))) if table is not None else ()


def versions(packages: tuple[Package, ...]) -> dict[str, str]:
    """Return versions by name; of a package that is there for two architectures, the second as `name:arch`."""
    table: dict[str, str] = {}
    for package in packages:
        table[f"{package.name}:{package.arch}" if package.name in table else package.name] = package.version
    return table


def architecture(packages: tuple[Package, ...]) -> str | None:
    """Return the architecture of the rootfs: that of dpkg itself."""
    return next((package.arch for package in packages if package.name == "dpkg"), None)


def _packages(text: str) -> Iterator[Package]:
    for stanza in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and not line.startswith(" "))
        if fields.get("Status") == _INSTALLED and {"Package", "Version", "Architecture"} <= fields.keys():
            yield Package(name=fields["Package"], version=fields["Version"], arch=fields["Architecture"])
