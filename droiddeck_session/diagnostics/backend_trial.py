# SPDX-License-Identifier: GPL-3.0-or-later
"""Probe one backend in a process of its own: `python -m droiddeck_session.diagnostics.backend_trial NAME`.

Prints its capabilities as one JSON object. A backend may be a third party's: if it crashes or hangs, only this does.
"""

from __future__ import annotations

import json
import os
import sys

from droiddeck_session import facts, paths, settings
from droiddeck_session.backends import registry
from droiddeck_session.errors import DroiddeckError
from droiddeck_session.session.prepare import probe_request


def main(name: str) -> int:
    """Print what the probe of the backend `name` shows; return the exit status."""
    environ = dict(os.environ)
    directories = paths.directories(environ)
    try:
        loaded = settings.load(directories=directories, environ=environ, flags={})
    except DroiddeckError:
        # doctor tells of the settings by themselves.
        loaded = settings.LoadedSettings(settings=settings.Settings(), origins={})
    request = probe_request(environ, loaded, machine=facts.uname().machine)
    try:
        shown = registry.capabilities(registry.load(name), request, directories.cache)
    except DroiddeckError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        return 1
    sys.stdout.write(json.dumps(shown.model_dump(mode="python")) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
