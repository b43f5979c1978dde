# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a tracer can work here: a container's seccomp policy, Yama, or a tracer that is there already forbid it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from droiddeck_session import processes
from droiddeck_session.paths import native_file

PTRACE_FIX: Final = (
    "leave the other tracer (strace, gdb), start the container with ptrace allowed (--cap-add=SYS_PTRACE, or another "
    "seccomp profile), or set sysctl kernel.yama.ptrace_scope to 0 or 1"
)
_REFUSED: Final = "ptrace is not permitted here"


def ptrace_permitted(machine: str | None = None, *, time_limit: float = 10.0) -> tuple[bool, str]:
    """Let two children be traced, one that asks for it and one that is seized, and say why it failed.

    Args:
        machine: as uname(2) has it; selects the native probe. None: this one's.
        time_limit: seconds.

    Returns:
        Whether ptrace works, and what forbids it otherwise; the fix is `PTRACE_FIX`.
    """
    program = native_file("confinement-probe", machine or os.uname().machine)
    try:
        completed = processes.run([str(program), "ptrace"], time_limit=time_limit)
        errors = json.loads(completed.stdout)
        failed = [f"{how}: {os.strerror(number)}" for how, number in errors.items() if number]
    except processes.ProcessError as error:
        return False, f"ptrace could not be tried: {error.message}"
    except (ValueError, TypeError, AttributeError):
        return False, f"ptrace could not be tried: {processes.failed(completed).message}"
    if not failed:
        return True, ""
    return False, f"{_REFUSED} ({', '.join(failed)}): {_reason()}"


def _reason() -> str:
    status = dict(line.partition(":")[::2] for line in Path("/proc/self/status").read_text().splitlines())
    tracer = status.get("TracerPid", "0").strip()
    if tracer != "0":
        return f"this process is already traced, by process {tracer}"
    if status.get("Seccomp", "0").strip() != "0":
        return "a seccomp filter is active, such as a container's"
    try:
        scope = Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip()
    except OSError:
        scope = "0"
    return f"kernel.yama.ptrace_scope is {scope}" if scope not in ("0", "1") else "the kernel's policy forbids it"
