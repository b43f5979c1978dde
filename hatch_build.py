# SPDX-License-Identifier: GPL-3.0-or-later
"""Build hook: runs `make` for this machine and puts the native parts into the wheel, which then has a platform's tag.

An editable install only runs `make`: the parts are found in `build/<machine>/`. Whatever other machine's parts lie in
`build/` (`make machines`) go into the wheel too; they are for guests, the tag is for the host.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FIX = "install a C compiler and make (apt install gcc libc6-dev make)"


class NativeBuildHook(BuildHookInterface[Any]):
    """Builds the native parts before the wheel is packed."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, and stage the results.

        Args:
            version: `standard` or `editable`.
            build_data: what hatchling packs; changed in place.
        """
        if self.target_name != "wheel":
            return
        self._make()
        if version == "editable":
            return
        for file in sorted(Path(self.root, "build").glob("*/*")):
            if file.is_file():
                build_data["force_include"][str(file)] = f"droiddeck_session/_native/{file.parent.name}/{file.name}"
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")

    def _make(self) -> None:
        if shutil.which("make") is None:
            self.app.abort(f"droiddeck-session: there is no `make`: {FIX}")
        # processes.py is what is being packed here; the build has nothing of the project to import.
        done = subprocess.run(["make"], cwd=self.root, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.app.abort(f"droiddeck-session: `make` failed; {FIX}\n{done.stdout}{done.stderr}")
