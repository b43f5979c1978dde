# SPDX-License-Identifier: GPL-3.0-or-later
"""A foreground verb whose session the daemon runs: it gets the descriptors and the signals, and tells the status.

Only where that makes no difference: who has a controlling terminal keeps it (a program in another session of the
kernel's has none), and the daemon's surroundings (namespaces, limits, credentials) must be the caller's.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from droiddeck_session.daemon.client import Client
from droiddeck_session.daemon.protocol import DaemonError
from droiddeck_session.errors import NotPermittedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import FrameType

_STDIO: Final = (0, 1, 2)
_NAMESPACES: Final = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")
# proc_pid_status(5): what a program inherits and cannot get back.
_INHERITED: Final = ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
# What signals.py takes as meant for the session.
_FORWARDED: Final = (
    signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH,
)  # fmt: skip


def run(environ: Mapping[str, str], request: Mapping[str, Any], tell: Callable[[str], None]) -> int | None:
    """Let the daemon run a session with our descriptors, and return its status; None where it shall not.

    Args:
        environ: the caller's environment.
        request: the fields of `start`.
        tell: gets each line for the person.

    Raises:
        DroiddeckError: the session could not be started, or the daemon went away.
    """
    if _is_closed(_STDIO) or _has_terminal():
        return None
    try:
        with Client(environ) as client:
            client.request("status", session="")
            forker = client.answer()["daemon"]["spawner"]
    except (DaemonError, NotPermittedError):
        return None
    if forker is None or surroundings(forker) != surroundings(os.getpid()):
        return None
    with Client(environ) as client:
        return _follow(client, request, tell)


def _is_closed(descriptors: Iterable[int]) -> bool:
    """Whether one of them is: it would be open where it is handed over."""
    try:
        for descriptor in descriptors:
            os.fstat(descriptor)
    except OSError:
        return True
    return False


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def surroundings(pid: int) -> tuple[object, ...] | None:
    """Return what a process passes on besides descriptors and environment; None if it cannot be read."""
    folder = Path(f"/proc/{pid}")
    try:
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
        limits = (folder / "limits").read_text()
        links = [(folder / "ns" / name) for name in _NAMESPACES] + [folder / "root"]
        where = [str(link.readlink()) if os.path.lexists(link) else "" for link in links]
        return (
            *where,
            limits,
            *(status.get(name, "").strip() for name in _INHERITED),
            os.getpriority(os.PRIO_PROCESS, pid),
        )
    except OSError:
        return None


def _follow(client: Client, request: Mapping[str, Any], tell: Callable[[str], None]) -> int:
    early: list[int] = []
    begun = False

    def forward(signum: int, _frame: FrameType | None) -> None:
        if begun:
            client.send({"signal": signum})
        else:
            early.append(signum)

    for number in _FORWARDED:
        # An ignored HUP (nohup) stays so; INT and QUIT that a shell's `&` ignores are the session's all the same.
        if signal.getsignal(number) is not signal.SIG_IGN or number in {signal.SIGINT, signal.SIGQUIT}:
            signal.signal(number, forward)
    client.request("start", _STDIO, attach=True, **request)
    begun = True
    for signum in early:
        client.send({"signal": signum})
    for line in client.lines():
        if "tell" in line:
            tell(line["tell"])
        elif "ok" in line:
            status: int = line["status"]
            return status
    raise AssertionError("lines() ends with an answer or an error")
