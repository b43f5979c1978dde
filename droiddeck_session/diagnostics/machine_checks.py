# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the machine: Python, settings, folders, tools, and what its kernel and its container allow."""

from __future__ import annotations

import os
import platform
import pwd
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from droiddeck_session import processes, root_mount
from droiddeck_session.backends.ptrace_check import PTRACE_FIX, ptrace_permitted
from droiddeck_session.diagnostics.finding import Finding, Surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST_PYTHON: Final = (3, 11)
# Below this a folder still works, but not for long.
LOW_SPACE: Final = {"data": 2 << 30, "state": 100 << 20, "cache": 500 << 20}
_SECCOMP_TRIAL: Final = Path(__file__).with_name("seccomp_trial.py")
# tool: why it is needed, by whom, and the Debian package that has it
_TOOLS: Final[tuple[tuple[str, str, Literal["all", "user"], str], ...]] = (
    ("tar", "guest import", "all", "tar"),
    ("mmdebstrap", "guest create", "all", "mmdebstrap"),
    ("newuidmap", "guest create without root", "user", "uidmap"),
    ("newgidmap", "guest create without root", "user", "uidmap"),
)
# sysctl: the value that forbids user namespaces to ordinary users, and one that does not
_NAMESPACE_SWITCHES: Final = {
    "user.max_user_namespaces": ("0", "10000"),
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
}


def python(_: Surroundings) -> Iterator[Finding]:
    """Is this Python new enough?"""
    new_enough = sys.version_info >= OLDEST_PYTHON
    yield Finding(
        id="python",
        status="ok" if new_enough else "fail",
        evidence=f"Python {platform.python_version()} at {sys.executable}",
        fix="" if new_enough else f"use Python {'.'.join(map(str, OLDEST_PYTHON))} or newer",
    )


def setting_files(surroundings: Surroundings) -> Iterator[Finding]:
    """Can the settings be used?"""
    error = surroundings.setting_error
    if error is None:
        yield Finding(id="settings", status="ok", evidence="files and environment can be used")
    else:
        yield Finding(id="settings", status="fail", evidence=error.message, fix=error.hint)


def traced(_: Surroundings) -> Iterator[Finding]:
    """Is somebody tracing us already? The kernel allows one tracer for a process."""
    fields = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    tracer = int(fields["TracerPid"])
    if tracer == 0:
        yield Finding(id="traced", status="ok", evidence="no other tracer is attached to this process (TracerPid 0)")
        return
    try:
        name = Path(f"/proc/{tracer}/comm").read_text().strip()
    except OSError:
        name = "a process of another namespace"
    # A tracer that does not follow forks leaves our children free; the ptrace check tries it.
    followed = not ptrace_permitted()[0]
    yield Finding(
        id="traced",
        status="fail" if followed else "warn",
        evidence=f"already being traced by {name} (TracerPid {tracer}); "
        + ("what it starts cannot be traced again" if followed else "what it starts is not"),
        fix=f"start outside {name}: without strace -f, a debugger or another proot around it",
    )


def ptrace(_: Surroundings) -> Iterator[Finding]:
    """May one process trace another?"""
    permitted, why_not = ptrace_permitted()
    yield Finding(
        id="ptrace",
        status="ok" if permitted else "fail",
        evidence=why_not or "a process could be traced, both when it asked for it and when it was seized",
        fix="" if permitted else f"{PTRACE_FIX}; or use --backend bwrap, which does not trace",
    )


def seccomp(_: Surroundings) -> Iterator[Finding]:
    """Does the kernel take a seccomp filter?"""
    trial = processes.run([sys.executable, "-I", "-S", os.fspath(_SECCOMP_TRIAL)])
    if trial.returncode == 0:
        yield Finding(id="seccomp", status="ok", evidence="the kernel took a filter")
        return
    said = trial.stdout.decode(errors="replace").strip() or processes.ending(trial.returncode)
    yield Finding(
        id="seccomp",
        status="warn",
        evidence=f"no filter can be installed: {said}",
        fix="tracers stop at every call then and are slow; a kernel with CONFIG_SECCOMP_FILTER has it",
    )


def user_namespaces(_: Surroundings) -> Iterator[Finding]:
    """Can a namespace be made in which the caller is root?"""
    trial = processes.run(["unshare", "--user", "--map-root-user", "--mount", "true"])
    if trial.returncode == 0:
        yield Finding(id="user-namespaces", status="ok", evidence="unshare --user --map-root-user --mount works")
        return
    off = [(name, cure) for name, (bad, cure) in _NAMESPACE_SWITCHES.items() if _sysctl(name) == bad]
    seen = ", ".join(f"{name} is {_NAMESPACE_SWITCHES[name][0]}" for name, _ in off) or "no sysctl forbids it"
    said = trial.stderr.decode(errors="replace").strip() or processes.ending(trial.returncode)
    yield Finding(
        id="user-namespaces",
        status="warn",
        evidence=f"{said}; {seen}",
        fix="; ".join(f"sysctl {name}={cure}" for name, cure in off)
        or root_mount.fix("a container forbids them: bwrap, chroot and guest create need them without root"),
    )


def _sysctl(name: str) -> str | None:
    try:
        return Path("/proc/sys", *name.split(".")).read_text().strip()
    except OSError:
        return None


def tools(surroundings: Surroundings) -> Iterator[Finding]:
    """Are the programs there that guests are made with?"""
    for tool, need, who, package in _TOOLS:
        found = shutil.which(tool, path=surroundings.environ.get("PATH"))
        if found is not None:
            yield Finding(id=f"tool.{tool}", status="ok", evidence=found)
        elif who == "user" and surroundings.uid == 0:
            yield Finding(id=f"tool.{tool}", status="skip", evidence=f"not on PATH; root does not need it for {need}")
        else:
            yield Finding(
                id=f"tool.{tool}",
                status="warn",
                evidence=f"{tool} is not on PATH; {need} needs it",
                fix=f"apt-get install {package}",
            )


def subordinate_ids(surroundings: Surroundings) -> Iterator[Finding]:
    """Has the caller ids to give away? mmdebstrap needs many in a user namespace."""
    if surroundings.uid == 0:
        yield Finding(id="subordinate-ids", status="skip", evidence="root needs none")
        return
    try:
        user = pwd.getpwuid(surroundings.uid).pw_name
    except KeyError:
        user = str(surroundings.uid)
    owners = {user, str(surroundings.uid)}
    without = [
        table
        for table in ("/etc/subuid", "/etc/subgid")
        if not any(line.partition(":")[0] in owners for line in _lines(Path(table)))
    ]
    if without:
        yield Finding(
            id="subordinate-ids",
            status="warn",
            evidence=f"{' and '.join(without)} give {user} no ids; guest create without root needs them",
            fix=f"usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}",
        )
    else:
        yield Finding(id="subordinate-ids", status="ok", evidence=f"/etc/subuid and /etc/subgid give {user} some")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def folders(surroundings: Surroundings) -> Iterator[Finding]:
    """Can the project's folders be written, and is there room?"""
    for name, low in LOW_SPACE.items():
        folder: Path = getattr(surroundings.directories, name)
        # Not Path.exists, which raises where a parent may not be searched.
        there = next(path for path in (folder, *folder.parents) if os.path.exists(path))  # noqa: PTH110 - see above
        variable = f"XDG_{name.upper()}_HOME"
        problem = _cannot_write(there)
        if problem:
            yield Finding(
                id=f"folder.{name}",
                status="fail",
                evidence=f"{folder} cannot be written: {there}: {problem}",
                fix=f"set {variable} to a folder that can be written, or change the owner of {there}",
            )
            continue
        free = shutil.disk_usage(there).free
        yield Finding(
            id=f"folder.{name}",
            status="ok" if free >= low else "warn",
            evidence=f"{folder}: {free / (1 << 30):.1f} GiB free",
            fix="" if free >= low else f"make room there, or set {variable} to a folder with more",
        )


def _cannot_write(folder: Path) -> str:
    """Return why no file can be made in a folder, empty if one can; only trying tells of ACLs and read-only mounts."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return error.strerror or str(error)
