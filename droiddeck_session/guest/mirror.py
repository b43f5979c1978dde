# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a new guest's packages come from: the mirror that this machine's own apt uses for Debian, where it uses one.

`apt-get indextargets` tells whose each of the machine's sources is (Origin and Label of its signed Release file), so no
address is known here, and none is guessed from a file. Where apt knows no Debian, mmdebstrap's own default stands.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from droiddeck_session import processes
from droiddeck_session.errors import FilesError

_KEYRINGS: Final = tuple(Path(f"/usr/share/keyrings/debian-archive-keyring.{suffix}") for suffix in ("gpg", "pgp"))
_FORMAT: Final = "$(ORIGIN) $(LABEL) $(REPO_URI)"
# Suites that have neither point releases nor security updates of their own.
_ROLLING: Final = frozenset({"sid", "unstable", "experimental", "rc-buggy"})


def require_keyring() -> Path:
    """Return the keyring that Debian's archives are signed with.

    Raises:
        FilesError: NO_KEYRING.
    """
    for keyring in _KEYRINGS:
        if keyring.exists():
            return keyring
    raise FilesError(
        code="NO_KEYRING",
        message=f"the keys of Debian's archive are not on this machine ({_KEYRINGS[0]})",
        hint="apt-get install debian-archive-keyring",
    )


def sources(suite: str, keyring: Path) -> tuple[str, ...]:
    """Return lines for the new guest's sources.list, or none to leave them to mmdebstrap.

    Args:
        suite: the wanted suite.
        keyring: signs them; it has the same path in the guest, where Debian's apt depends on its package.
    """
    known = _known(_targets())
    main = known.get("Debian")
    if main is None:
        return ()
    option = f"[signed-by={keyring}]"
    lines = [f"deb {option} {main} {suite} main"]
    if suite not in _ROLLING:
        lines.append(f"deb {option} {main} {suite}-updates main")
        if "Debian-Security" in known:
            lines.append(f"deb {option} {known['Debian-Security']} {suite}-security main")
    return tuple(lines)


def _targets() -> str:
    if shutil.which("apt-get") is None:
        return ""
    asked = processes.run(("apt-get", "indextargets", "--format", _FORMAT, "Created-By: Packages"))
    return os.fsdecode(asked.stdout) if asked.returncode == 0 else ""


def _known(targets: str) -> dict[str, str]:
    """Return the first address over the network for each label of Debian's own."""
    known: dict[str, str] = {}
    for line in targets.splitlines():
        origin, _, rest = line.partition(" ")
        label, _, address = rest.rpartition(" ")
        if origin == "Debian" and address.startswith(("http://", "https://")):
            known.setdefault(label, address)
    return known
