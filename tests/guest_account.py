# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line as an account without root, with subordinate ids, on a machine that need not have such an account.

Run by root, the account exists in a private mount namespace only, where tables of our own lie over /etc/passwd and its
like; newuidmap(1) reads them there. Python and the sources are bound into the account's reach as well, since they often
lie in a home that nobody else may enter. Run by anybody else, the account is the caller's.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from conftest import ROOT, CommandLine, command_line

from droiddeck_session.guest.removal import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "guestmaker"
UID = 64123
SUBORDINATE = 2_000_000
TABLES = {
    "passwd": f"{NAME}:x:{UID}:{UID}::/nonexistent:/bin/sh\n",
    "group": f"{NAME}:x:{UID}:\n",
    "subuid": f"{NAME}:{SUBORDINATE}:65536\n",
    "subgid": f"{NAME}:{SUBORDINATE}:65536\n",
}
ENTER = """\
base=$1 python=$2 source=$3 site=$4; shift 4
for table in passwd group subuid subgid; do mount --bind "$base/etc/$table" "/etc/$table"; done
mount --rbind "$python" "$base/python"
mount --rbind "$source" "$base/source"
mount --rbind "$site" "$base/site"
exec setpriv --reuid=64123 --regid=64123 --clear-groups -- "$@"
"""


@dataclass
class AccountCommandLine(CommandLine):
    """`droiddeck-session` as the account starts it."""

    base: Path = field(default_factory=Path)

    def argv(self, *arguments: str) -> list[str]:
        python = self.base / "python" / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        bound = [str(self.base), sys.base_prefix, str(ROOT), sysconfig.get_path("purelib")]
        own = ["unshare", "--mount", "sh", "-euc", ENTER, "sh", *bound]
        return [*own, str(python), "-m", "droiddeck_session", *arguments]

    def hand_over(self) -> None:
        """Give what was made in the account's home to the account."""
        home = self.base / "home"
        for path in (home, *home.rglob("*")):
            os.chown(path, UID, UID, follow_symlinks=False)


@contextmanager
def account() -> Iterator[CommandLine]:
    """Make an account whose home nobody else may enter, and remove it with all it has."""
    base = Path(tempfile.mkdtemp(prefix="droiddeck-account-"))
    home = base / "home"
    home.mkdir(mode=0o700)
    plain = command_line(home, data=home / "data", cache=home / "cache")
    try:
        yield plain if os.geteuid() != 0 else _without_root(plain, base)
    finally:
        # Not rmtree: a guest may hold folders that their own owner may not enter.
        remove_tree(os.fspath(base))


def _without_root(plain: CommandLine, base: Path) -> AccountCommandLine:
    base.chmod(0o755)
    for folder in ("etc", "python", "source", "site"):
        (base / folder).mkdir(mode=0o755)
    for table, line in TABLES.items():
        (base / "etc" / table).write_text(Path("/etc", table).read_text() + line)
        (base / "etc" / table).chmod(0o644)
    sources = [base / "source", *(base / "source" / "backends" / name for name in ("proot", "fastpath"))]
    path = [*map(str, sources), str(base / "site")]
    environ = {**plain.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1"}
    cli = AccountCommandLine(environ=environ, folders=plain.folders, base=base)
    cli.hand_over()
    return cli
