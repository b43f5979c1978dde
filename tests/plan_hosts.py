# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines as facts, for plans without a machine: a Debian as root, a Debian as a user, two of an Android app."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from droiddeck_session.facts import Facts, GuestFacts, HostPath, Questions, Uname
from droiddeck_session.layers import TableFile
from droiddeck_session.plan import build
from droiddeck_session.plan.capabilities import Capabilities
from droiddeck_session.plan.request import Request, RequestedBind
from droiddeck_session.plan.tables import Tables, parse_tables
from droiddeck_session.rootfs import GuestPath
from droiddeck_session.settings import AndroidSettings, DisplaySettings, LoadedSettings, Settings
from droiddeck_session.templates import expand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from droiddeck_session.plan.model import Plan

ROOT = Path(__file__).parent.parent
FILES = {
    name: TableFile(f"config/{name}", (ROOT / "config" / name).read_text())
    for name in ("binds.toml", "environment.toml")
}
TABLES = parse_tables([FILES["binds.toml"]], [FILES["environment.toml"]])

HostKind = Literal["directory", "file", "other", "missing", "hidden"]

PASSWD = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
GROUP = "root:x:0:\ndaemon:x:1:\n"
DEBIAN_GUEST: Mapping[str, HostKind] = {
    **dict.fromkeys(("/dev", "/proc", "/sys", "/tmp", "/root", "/run/droiddeck", "/opt/droiddeck"), "directory"),
    **dict.fromkeys(("/etc/passwd", "/etc/group", "/etc/hosts", "/etc/ld.so.preload", "/etc/resolv.conf"), "file"),
    **dict.fromkeys(("/usr/bin/env", "/usr/bin/python3", "/bin/bash"), "file"),
}
LINUX_HOST: Mapping[str, HostKind] = {
    **dict.fromkeys(("/dev", "/proc", "/sys", "/dev/shm", "/dev/fd", "/tmp/.X11-unix", "/home/user"), "directory"),
    **dict.fromkeys(("/proc/stat", "/proc/version", "/proc/uptime"), "file"),
}
BWRAP = Capabilities(
    backend="bwrap", available=True, confines=True, nodename=True, read_only_binds=True, colon_in_binds=True
)
NO_APP = AndroidSettings()
PLAIN_DISPLAY = DisplaySettings()


@dataclass(frozen=True)
class Machine:
    """A machine with a guest.

    Attributes:
        host: what host paths are; all else is missing.
        unreadable: host paths that cannot be read.
        links: what host paths resolve to.
        guest: what guest paths are, by resolved path.
        guest_links: what guest paths resolve to.
    """

    uid: int = 0
    gid: int = 0
    android: bool = False
    host: Mapping[str, HostKind] = field(default_factory=lambda: LINUX_HOST)
    unreadable: frozenset[str] = frozenset()
    links: Mapping[str, str] = field(default_factory=dict)
    guest: Mapping[str, HostKind] = field(default_factory=lambda: DEBIAN_GUEST)
    guest_links: Mapping[str, str] = field(default_factory=dict)
    guest_read_only: bool = False
    root: str = "/srv/guests/demo/rootfs"
    more: Mapping[str, Any] = field(default_factory=dict)
    capabilities: Capabilities = BWRAP
    android_settings: AndroidSettings = NO_APP
    display: DisplaySettings = PLAIN_DISPLAY

    def facts(self, questions: Questions) -> Facts:
        """Return the answers to these questions."""
        known: dict[str, Any] = {
            "uname": Uname(
                sysname="Linux", nodename="workshop", release="6.12.38-deb13", version="#1 SMP Debian", machine="x86_64"
            ),
            "timezone": "Europe/Berlin",
            "resolver": "nameserver 192.0.2.1\n",
            "hosts": "127.0.0.1\tlocalhost\n",
            "terminal": "xterm",
            "runtime_dir": None,
            "wayland_display": None,
            "x_display": None,
            **self.more,
        }
        facts = Facts(
            uid=self.uid, gid=self.gid, android=self.android, paths={}, guest=self._guest(questions, {}), **known
        )
        names = facts.host_names(questions.names)
        paths = {path: self._host_path(path) for template in questions.host if (path := expand(template, names))}
        return facts.model_copy(update={"paths": paths, "guest": self._guest(questions, names)})

    def _host_path(self, path: str) -> HostPath:
        kind = self.host.get(path, "missing")
        readable = kind not in {"missing", "hidden"} and path not in self.unreadable
        return HostPath(kind=kind, resolved=self.links.get(path, path), readable=readable)

    def _guest(self, questions: Questions, names: Mapping[str, str]) -> GuestFacts:
        asked = {path for template in questions.guest if (path := expand(template, names))}
        asked |= {"/root", *(f"/root/{path}" for path in questions.in_home)}
        return GuestFacts(
            name="demo",
            root=self.root,
            read_only=self.guest_read_only,
            paths={path: self._guest_path(path) for path in asked},
            users={0: ("root", "/root"), 1: ("daemon", "/usr/sbin")},
            groups=frozenset({0, 1}),
            passwd=PASSWD,
            group=GROUP,
            made_for="x86_64",
        )

    def _guest_path(self, path: str) -> GuestPath:
        resolved = self.guest_links.get(path, path)
        kind = self.guest.get(resolved, "missing")
        assert kind != "hidden"
        return GuestPath(kind=kind, resolved=resolved, executable=kind in {"file", "directory"})

    def plan(self, request: Request, *, tables: Tables = TABLES, settings: Settings | None = None) -> Plan:
        """Return the plan for a request on this machine."""
        chosen = settings or Settings(android=self.android_settings, display=self.display)
        loaded = LoadedSettings(settings=chosen)
        facts = self.facts(build.questions(request, loaded, tables))
        return build.build(request, loaded, tables, facts, self.capabilities)

    def having(self, **changes: Any) -> Machine:
        """Return the machine with other attributes; mappings are added to."""
        for name in ("host", "guest", "more"):
            if name in changes:
                changes[name] = {**getattr(self, name), **changes[name]}
        return replace(self, **changes)


TRACER = Capabilities(
    backend="fastpath", available=True, confines=True, kernel_identity="full", change_identity=True,
    makes_mount_points=True, main_status=True, signal_status=True, fast_path=True,
)  # fmt: skip

DEBIAN_ROOT = Machine()
DEBIAN_USER = Machine(
    uid=1000,
    gid=1000,
    host={
        **LINUX_HOST,
        "/run/user/1000/wayland-1": "other",
        "/run/user/1000/pulse/native": "other",
        "/home/user/.Xauthority": "file",
        "/sys/fs/selinux": "directory",
    },
    more={
        "runtime_dir": "/run/user/1000",
        "wayland_display": "wayland-1",
        "x_display": ":0",
        "x_authority": "/home/user/.Xauthority",
    },
    guest={**DEBIAN_GUEST, "/usr/games/gamescope": "file", "/usr/bin/mangoapp": "file", "/usr/games/steam": "file"},
)

_FILES, _CACHE, _STORAGE = "/data/user/0/org.example/files", "/data/user/0/org.example/cache", "/storage/emulated/0"
ANDROID_APP = Machine(
    uid=10234,
    gid=10234,
    android=True,
    root=f"{_FILES}/linuxfs",
    android_settings=AndroidSettings(files=_FILES, cache=_CACHE, storage=_STORAGE),
    host={
        **dict.fromkeys(("/dev", "/proc", "/sys", _FILES, _CACHE, _STORAGE, f"{_FILES}/.wayland-rt"), "directory"),
        **dict.fromkeys(("/proc/self/fd", "/sys/class/drm", "/sys/class/powercap", "/sys/fs/selinux"), "directory"),
        "/system/fonts": "directory",
        **dict.fromkeys((f"{_CACHE}/drm/sys", f"{_CACHE}/drm/dri", f"{_CACHE}/drm/class"), "directory"),
        **dict.fromkeys((f"{_FILES}/session/dev/input", f"{_FILES}/session/sys/power_supply"), "directory"),
        **dict.fromkeys((f"{_CACHE}/drm/dri/renderD0", f"{_FILES}/session/proc-stat"), "file"),
        **dict.fromkeys(("/proc/stat", "/proc/version", "/proc/loadavg", "/proc/uptime", "/proc/vmstat"), "file"),
        **dict.fromkeys(("/proc/bus/pci/devices", "/proc/sys/fs/file-max"), "hidden"),
        **dict.fromkeys(("/sys/class/kgsl/kgsl-3d0/gpuclk", "/sys/class/kgsl/kgsl-3d0/devfreq/cur_freq"), "file"),
        **dict.fromkeys(("/dev/urandom", "/dev/kgsl-3d0", f"{_FILES}/.wayland-rt/wayland-0"), "other"),
        **dict.fromkeys(("/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"), "other"),
    },
    unreadable=frozenset(
        {"/proc/stat", "/proc/version", "/proc/loadavg", "/proc/uptime", "/proc/vmstat", "/sys/class/drm"}
        | {"/sys/class/powercap", "/sys/class/kgsl/kgsl-3d0/gpuclk"}
    ),
    guest_links={"/etc/resolv.conf": "/run/systemd/resolve/stub-resolv.conf"},
    guest={
        **DEBIAN_GUEST,
        "/usr/bin/gamescope": "file",
        "/root/.local/share/Steam/steamrtarm64/steam": "file",
    },
    more={
        "uname": Uname(
            sysname="Linux", nodename="localhost", release="6.1.75-android14-11-g0123456789ab",
            version="#1 SMP PREEMPT Tue Sep 2 12:00:00 UTC 2025", machine="aarch64",
        ),
        "resolver": None,
        "hosts": None,
        "terminal": None,
        "runtime_dir": f"{_FILES}/.wayland-rt",
        "wayland_display": "wayland-0",
        "gpu_device": "/dev/kgsl-3d0",
        "render_node": "renderD0",
    },
    capabilities=TRACER,
)  # fmt: skip
# Another device of the kind: no folder of the kernel's can be read, so the app feeds stand-ins for all of them; a Mali
# GPU, an HDR screen, and controllers without uinput.
_KGSL, _LIVE = "/sys/class/kgsl/kgsl-3d0", f"{_FILES}/session/sys"
ANDROID_LIVE = ANDROID_APP.having(
    host={
        **dict.fromkeys((f"{_LIVE}/hwmon", f"{_LIVE}/kgsl-3d0"), "directory"),
        **dict.fromkeys((f"{_LIVE}/kgsl-3d0/perf_now", f"{_LIVE}/kgsl-3d0/cur_freq"), "file"),
        **dict.fromkeys((f"{_KGSL}/gpu_busy_percentage", f"{_KGSL}/devfreq/gpu_load", f"{_KGSL}/temp"), "file"),
        **dict.fromkeys((f"{_KGSL}/devfreq/temp", f"{_FILES}/session/steam-libraries.json"), "file"),
        **dict.fromkeys((f"{_STORAGE}/Download/droiddeck-no-uinput", f"{_CACHE}/drm/dri/renderD1"), "file"),
        **dict.fromkeys(("/proc/uptime", f"{_CACHE}/drm/dri/renderD0", "/dev/kgsl-3d0"), "missing"),
        **dict.fromkeys(("/dev/mali0", f"{_FILES}/pulse.sock"), "other"),
    },
    unreadable=ANDROID_APP.unreadable | {f"{_KGSL}/gpu_busy_percentage"},
    guest={"/usr/share/vulkan/icd.d/freedreno_icd.aarch64.json": "file"},
    more={"gpu_device": "/dev/mali0", "render_node": "renderD1", "pulse_server": f"unix:{_FILES}/pulse.sock"},
    display=DisplaySettings(hdr=True, fps=90),
)
MACHINES = {
    "debian-root": DEBIAN_ROOT,
    "debian-user": DEBIAN_USER,
    "android-app": ANDROID_APP,
    "android-live": ANDROID_LIVE,
}


def run(*binds: tuple[str, str], argv: tuple[str, ...] = ("true",), **more: Any) -> Request:
    """Return a request of `run` with binds, host and guest each."""
    asked = tuple(RequestedBind(host=host, guest=guest, read_only=False, origin="flag --bind") for host, guest in binds)
    return Request(kind="run", argv=argv, binds=asked, **more)


def table(
    text: str, *, name: str = "binds.toml", origin: str = "/home/user/.config/droiddeck-session/binds.toml"
) -> Tables:
    """Return the vendor's tables with a user's file over one of them."""
    layers = {key: [file] for key, file in FILES.items()}
    layers[name].append(TableFile(origin, text))
    return parse_tables(layers["binds.toml"], layers["environment.toml"])
