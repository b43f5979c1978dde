# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the project keeps things: the XDG base directories, computed from an environment that is passed in.

Source: XDG Base Directory Specification 0.8. A relative value is ignored, as the specification asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME: Final = "droiddeck-session"
SYSTEM_CONFIG: Final = Path("/etc") / NAME


@dataclass(frozen=True, kw_only=True)
class Directories:
    """The project's own folders; none of them need exist yet."""

    config: Path
    data: Path
    state: Path
    cache: Path

    @property
    def guests(self) -> Path:
        """The store of guests, one folder each."""
        return self.data / "guests"

    @property
    def sessions(self) -> Path:
        """The session folders, one per run."""
        return self.state / "sessions"


def directories(environ: Mapping[str, str]) -> Directories:
    """Return the project's folders for this environment.

    Args:
        environ: the caller's environment; HOME and the XDG_*_HOME variables are read.
    """

    def absolute(variable: str, fallback: Path) -> Path:
        value = environ.get(variable, "")
        return Path(value) if value.startswith("/") else fallback

    home = absolute("HOME", Path("/"))

    def base(variable: str, fallback: str) -> Path:
        return absolute(variable, home / fallback)

    return Directories(
        config=base("XDG_CONFIG_HOME", ".config") / NAME,
        data=base("XDG_DATA_HOME", ".local/share") / NAME,
        state=base("XDG_STATE_HOME", ".local/state") / NAME,
        cache=base("XDG_CACHE_HOME", ".cache") / NAME,
    )


def vendor_file(name: str) -> Path:
    """Return the path of a file of `config/`: beside the code in a wheel, at the top of a checkout otherwise."""
    installed = Path(__file__).parent / "_config" / name
    return installed if installed.exists() else Path(__file__).parent.parent / "config" / name


def native_file(name: str, machine: str) -> Path:
    """Return the path of a native program or library of `machine` (as uname has it), which may not have been built.

    A wheel carries it in `_native/<machine>/`; in a checkout `make` puts it into `build/<machine>/`.
    """
    installed = Path(__file__).parent / "_native" / machine / name
    return installed if installed.exists() else Path(__file__).parent.parent / "build" / machine / name
