# SPDX-License-Identifier: GPL-3.0-or-later
"""What a session's processes are and use, read from /proc."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from droiddeck_session.session.folder import LOCK
from droiddeck_session.session.membership import Membership, ProcessStat
from droiddeck_session.session.recovery import Note

if TYPE_CHECKING:
    from droiddeck_session.daemon.sessions import Session

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
# proc_pid_stat(5), counted after the last ")".
_UTIME, _STIME, _THREADS, _RSS = 11, 12, 17, 21
_SUMMED: Final = ("cpu_seconds", "resident_bytes", "read_bytes", "written_bytes", "threads", "switches")


def processes(session: Session) -> list[dict[str, Any]]:
    """Return the session's processes, oldest first: pid, parent, name, state and what each uses."""
    return [_measure(member) for member in _members(session)]


def stats(session: Session) -> dict[str, Any]:
    """Return what each process uses, and `tree` with the sums over those that live."""
    measured = processes(session)
    tree = {name: sum(process[name] or 0 for process in measured) for name in _SUMMED}
    return {"tree": {"processes": len(measured), **tree}, "processes": measured}


def _members(session: Session) -> list[ProcessStat]:
    if not session.folder or session.over.is_set():
        return []
    try:
        lock = os.open(Path(session.folder) / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        note = Note.read(lock)
    finally:
        os.close(lock)
    if note is None:
        return []
    return Membership(note.token, ancestor=session.pid, known=note.processes).living()


def _measure(member: ProcessStat) -> dict[str, Any]:
    """Return what a process is and uses; None for each figure that is not ours to read."""
    fields = _text(member.pid, "stat").rpartition(")")[2].split()
    whole = len(fields) > _RSS
    io = dict(line.split(": ") for line in _text(member.pid, "io").splitlines() if ": " in line)
    status = dict(line.split(":", 1) for line in _text(member.pid, "status").splitlines() if ":" in line)
    switches = [status.get(f"{name}_ctxt_switches") for name in ("voluntary", "nonvoluntary")]
    return {
        "pid": member.pid,
        "parent": member.parent,
        "name": member.name,
        "state": member.state,
        "threads": int(fields[_THREADS]) if whole else None,
        "cpu_seconds": (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS if whole else None,
        "resident_bytes": int(fields[_RSS]) * _PAGE if whole else None,
        "read_bytes": int(io["read_bytes"]) if "read_bytes" in io else None,
        "written_bytes": int(io["write_bytes"]) if "write_bytes" in io else None,
        "switches": sum(int(number) for number in switches if number) if any(switches) else None,
    }


def _text(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
