# SPDX-License-Identifier: GPL-3.0-or-later
"""The garbage collector while modules are imported: out of the way, and back whatever happens."""

from __future__ import annotations

import subprocess
import sys


def test_the_collector_is_out_while_modules_are_imported_and_back_after_a_failed_import() -> None:
    # In a process of its own: what is frozen stays so.
    code = (
        "import gc\n"
        "from droiddeck_session.cli.importing import importing\n"
        "try:\n"
        "    with importing():\n"
        "        print(gc.isenabled())\n"
        "        import no_such_module\n"
        "except ImportError:\n"
        "    print(gc.isenabled(), gc.get_freeze_count() > 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "False\nTrue True\n"
