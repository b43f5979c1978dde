# SPDX-License-Identifier: GPL-3.0-or-later
"""What this machine and this guest are: the only impure input of `plan/`, gathered once and then a frozen value."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from droiddeck_session.rootfs import GuestPath, PathText, look_up, read_file
from droiddeck_session.templates import expand

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "Facts",
    "GuestFacts",
    "GuestPath",
    "HostPath",
    "PathText",
    "Questions",
    "Uname",
    "expand",
    "gather",
    "uname",
]

# The home of a uid that the guest does not know.
DEFAULT_HOME: Final = "/root"

# Texts that are read whole; a file that is longer is none of those we know.
_TEXT_LIMIT: Final = 1 << 20
# elf.h: EM_386, EM_ARM, EM_X86_64, EM_AARCH64, EM_RISCV; by the names that uname(2) has for them.
_MACHINES: Final = {3: "i686", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
_ELF_HEADER: Final = 20
_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")
# These name another file for each process that looks, so they must reach the tracer unresolved.
_OF_THE_LOOKER: Final = ("/proc/self", "/proc/thread-self")
# Android's GPU devices, which an app may open where it may not open a render node.
_GPU_DEVICES: Final = ("/dev/kgsl-3d0", "/dev/mali0")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Uname(_Frozen):
    """What uname(2) answers."""

    sysname: str
    nodename: str
    release: str
    version: str
    machine: str


class HostPath(_Frozen):
    """One host path that the plan may bind.

    Attributes:
        kind: what it is after links; `missing` also for a dangling link, `hidden` where a parent may not be searched.
        resolved: the path with links resolved; the path itself when missing, and below /proc/self, which is different
            for each process that looks.
        readable: open(2) for reading succeeds (for a folder: it can be listed).
    """

    kind: Literal["directory", "file", "other", "missing", "hidden"]
    resolved: PathText
    readable: bool


class GuestFacts(_Frozen):
    """The rootfs.

    Attributes:
        name: as the user says it.
        root: absolute host path, links resolved.
        read_only: a new entry cannot be made at its top.
        paths: what was asked about, by guest path as it was asked.
        users: uids that the guest's own /etc/passwd knows, with login name and home.
        groups: gids that its /etc/group knows.
        passwd, group: the texts of these two files, empty where they cannot be read.
        made_for: machine (as uname has it) that its /usr/bin/env is for, or None if that could not be read.
    """

    name: str
    root: PathText
    read_only: bool
    paths: dict[PathText, GuestPath]
    users: dict[int, tuple[PathText, PathText]]
    groups: frozenset[int]
    passwd: PathText = ""
    group: PathText = ""
    made_for: str | None


class Facts(_Frozen):
    """All that planning may know about the world.

    Attributes:
        uname: of the host.
        uid, gid: the caller's effective ids.
        android: whether the host is Android (ANDROID_ROOT is set and /system/bin exists).
        timezone: IANA name, for TZ.
        paths: host paths that were asked about.
        guest: the rootfs, or None for a backend without one.
        resolver: text of the host's /etc/resolv.conf; None if unreadable. A guest shares the host's network, so a
            server on the loopback serves it too.
        hosts: text of the host's /etc/hosts; None if unreadable.
        terminal: value of the caller's TERM, or None.
        runtime_dir: the caller's XDG_RUNTIME_DIR, or None.
        wayland_display: the caller's WAYLAND_DISPLAY, or None.
        pulse_server: the caller's PULSE_SERVER, or None.
        x_display: the caller's DISPLAY, or None.
        x_authority: the file with the caller's X cookies, if it can be read.
        gpu_device: Android's GPU device that can stand in for a render node, or None.
        render_node: the name that a render node of that device has, or None.
    """

    uname: Uname
    uid: int
    gid: int
    android: bool
    timezone: str | None
    paths: dict[PathText, HostPath]
    guest: GuestFacts | None
    resolver: PathText | None
    hosts: PathText | None
    terminal: PathText | None
    runtime_dir: PathText | None
    wayland_display: PathText | None
    x_display: PathText | None
    x_authority: PathText | None = None
    pulse_server: PathText | None = None
    gpu_device: PathText | None = None
    render_node: str | None = None

    def host_names(self, settings_names: Mapping[str, str]) -> dict[str, str]:
        """Return what the `{names}` of host paths stand for: these facts over the settings' own."""
        found = {
            "root": self.guest.root if self.guest else None,
            "runtime_dir": self.runtime_dir,
            "wayland_socket": self._wayland_socket(),
            "pulse_socket": self._pulse_socket(),
            "x_display": self.x_display,
            "x_authority": self.x_authority,
            "gpu_device": self.gpu_device,
            "render_node": self.render_node,
        }
        return {**settings_names, **{name: value for name, value in found.items() if value is not None}}

    def _wayland_socket(self) -> str | None:
        # An absolute WAYLAND_DISPLAY is the socket itself (wl_display_connect(3)).
        if self.wayland_display is not None and self.wayland_display.startswith("/"):
            return self.wayland_display
        if self.wayland_display is None or self.runtime_dir is None:
            return None
        return f"{self.runtime_dir}/{self.wayland_display}"

    def _pulse_socket(self) -> str | None:
        if self.pulse_server is not None:
            # What is no local socket needs no bind.
            path = self.pulse_server.removeprefix("unix:")
            return path if path.startswith("/") else None
        return None if self.runtime_dir is None else f"{self.runtime_dir}/pulse/native"


@dataclass(frozen=True, kw_only=True)
class Questions:
    """What a plan needs to know.

    Attributes:
        host: templates of host paths.
        guest: templates of guest paths.
        in_home: paths below the home of whoever runs the guest.
        names: what the settings say that `{names}` of templates stand for.
    """

    host: frozenset[str]
    guest: frozenset[str]
    in_home: frozenset[str] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)


class GuestReference(Protocol):
    """A guest of the store."""

    @property
    def name(self) -> str:
        """As the user says it."""
        ...

    @property
    def root(self) -> str | os.PathLike[str]:
        """Host path of the rootfs."""
        ...


def uname() -> Uname:
    """Return this machine's identity as the kernel tells it."""
    found = os.uname()
    return Uname(
        sysname=found.sysname,
        nodename=found.nodename,
        release=found.release,
        version=found.version,
        machine=found.machine,
    )


def gather(questions: Questions, *, guest: GuestReference | None, environ: Mapping[str, str]) -> Facts:
    """Look at this machine and at the guest, once.

    Args:
        questions: the paths that the plan will ask for.
        guest: the guest, or None for a backend without a rootfs.
        environ: the caller's environment.

    Raises:
        FilesError: the rootfs cannot be opened.
    """
    gpu_device, render_node = _gpu()
    found = Facts(
        uname=uname(),
        uid=os.geteuid(),
        gid=os.getegid(),
        android="ANDROID_ROOT" in environ and Path("/system/bin").is_dir(),
        timezone=_timezone(environ),
        paths={},
        guest=None,
        resolver=_text("/etc/resolv.conf"),
        hosts=_text("/etc/hosts"),
        terminal=environ.get("TERM") or None,
        runtime_dir=environ.get("XDG_RUNTIME_DIR") or None,
        wayland_display=environ.get("WAYLAND_DISPLAY") or None,
        pulse_server=environ.get("PULSE_SERVER") or None,
        x_display=environ.get("DISPLAY") or None,
        x_authority=_x_authority(environ),
        gpu_device=gpu_device,
        render_node=render_node,
    )
    names = found.host_names(questions.names)
    if guest is not None:
        names["root"] = os.path.realpath(guest.root)
    return found.model_copy(
        update={
            "paths": {path: host_path(path) for path in _expanded(questions.host, names)},
            "guest": None if guest is None else _guest(guest, questions, names),
        }
    )


def host_path(path: str) -> HostPath:
    """Look at one host path."""
    try:
        mode = Path(path).stat().st_mode
    except PermissionError:
        return HostPath(kind="hidden", resolved=path, readable=False)
    except OSError:
        return HostPath(kind="missing", resolved=path, readable=False)
    kind: Literal["directory", "file", "other"] = "other"
    if stat.S_ISDIR(mode):
        kind = "directory"
    elif stat.S_ISREG(mode):
        kind = "file"
    of_the_looker = any(path == place or path.startswith(f"{place}/") for place in _OF_THE_LOOKER)
    resolved = os.path.normpath(path) if of_the_looker else os.path.realpath(path)
    return HostPath(kind=kind, resolved=resolved, readable=_readable(path, kind))


def _readable(path: str, kind: str) -> bool:
    """Whether it can be opened; a device or pipe is only asked about, for opening one may set something off."""
    if kind == "other":
        return os.access(path, os.R_OK)
    try:
        if kind == "directory":
            with os.scandir(path):
                return True
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _expanded(templates: Iterable[str], names: Mapping[str, str]) -> list[str]:
    found = (expand(template, names) for template in sorted(templates))
    return [path for path in found if path is not None]


def _guest(guest: GuestReference, questions: Questions, names: Mapping[str, str]) -> GuestFacts:
    root = os.path.realpath(guest.root)
    passwd, group = (_guest_text(root, path) for path in ("/etc/passwd", "/etc/group"))
    users = _users(passwd)
    homes = {users.get(uid, ("", DEFAULT_HOME))[1] for uid in (os.geteuid(), 0)}
    asked = {
        *_expanded(questions.guest, names),
        *homes,
        *(f"{home}/{path}" for home in homes for path in questions.in_home),
    }
    return GuestFacts(
        name=guest.name,
        root=root,
        read_only=bool(os.statvfs(root).f_flag & os.ST_RDONLY) or not os.access(root, os.W_OK),
        paths={path: look_up(root, path) for path in sorted(asked)},
        users=users,
        groups=_groups(group),
        passwd=passwd,
        group=group,
        made_for=_made_for(read_file(root, "/usr/bin/env", limit=_ELF_HEADER)),
    )


def _guest_text(root: str, path: str) -> str:
    content = read_file(root, path, limit=_TEXT_LIMIT) or b""
    return os.fsdecode(content.replace(b"\0", b""))


def _users(passwd: str) -> dict[int, tuple[str, str]]:
    """Return login name and home by uid; of two with the same uid the first counts, as for getpwuid(3)."""
    found: dict[int, tuple[str, str]] = {}
    for line in passwd.splitlines():
        match line.split(":"):
            case [name, _, uid, _, _, home, _] if uid.isascii() and uid.isdigit() and home.startswith("/"):
                found.setdefault(int(uid), (name, home))
    return found


def _groups(group: str) -> frozenset[int]:
    fields = (line.split(":") for line in group.splitlines())
    return frozenset(int(entry[2]) for entry in fields if len(entry) == 4 and entry[2].isascii() and entry[2].isdigit())  # noqa: PLR2004 - group(5): name, password, gid, members


def _made_for(header: bytes | None) -> str | None:
    if header is None or len(header) < _ELF_HEADER or header[:4] != b"\x7fELF":
        return None
    # e_ident[EI_DATA], then e_machine behind the 16 bytes of e_ident and the 2 of e_type.
    order: Literal["little", "big"] = "little" if header[5] == 1 else "big"
    return _MACHINES.get(int.from_bytes(header[18:20], order))


def _gpu() -> tuple[str | None, str | None]:
    for device in _GPU_DEVICES:
        try:
            number = Path(device).stat().st_rdev
        except OSError:
            continue
        return device, f"renderD{os.minor(number)}"
    return None, None


def _x_authority(environ: Mapping[str, str]) -> str | None:
    """Return the file that Xlib takes its cookies from, if the caller can read it."""
    home = environ.get("HOME")
    path = environ.get("XAUTHORITY") or (f"{home}/.Xauthority" if home else "")
    found = host_path(path) if path.startswith("/") else None
    return path if found is not None and found.kind == "file" and found.readable else None


def _timezone(environ: Mapping[str, str]) -> str | None:
    """Return the zone as the caller, the system's link or the system's text names it, in that order."""
    linked = os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2]
    candidates = (environ.get("TZ", "").removeprefix(":"), linked, (_text("/etc/timezone") or "").strip())
    return next((zone for zone in candidates if _ZONE.fullmatch(zone)), None)


def _text(path: str) -> str | None:
    try:
        with Path(path).open("rb") as stream:
            return os.fsdecode(stream.read(_TEXT_LIMIT).replace(b"\0", b""))
    except OSError:
        return None
