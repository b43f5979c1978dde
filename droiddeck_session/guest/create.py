# SPDX-License-Identifier: GPL-3.0-or-later
"""Making a guest with mmdebstrap: Debian's `minbase` and python3, plus what the user includes.

Two ways, in this order: as root, mmdebstrap's `root` mode; else its `unshare` mode as root of a user namespace that
maps the caller and the caller's subordinate ids. There is no third: `fakechroot` gives wrong links and permissions, and
`chrootless` supports few packages. Without root all files of the finished rootfs are the caller's own, because a
session's processes have the caller's ids.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from droiddeck_session import processes
from droiddeck_session.errors import FilesError, UsageError
from droiddeck_session.guest import archives, mirror
from droiddeck_session.guest.mount_points import make_fixed
from droiddeck_session.guest.namespaces import (
    USER_NAMESPACE,
    dying_with_us,
    enclosed,
    require_own_mounts,
    require_user_namespace,
)
from droiddeck_session.guest.packages import installed, versions
from droiddeck_session.guest.store import GuestRecord, require_name, unusable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from droiddeck_session.guest.packages import Package
    from droiddeck_session.guest.stages import Stage
    from droiddeck_session.guest.store import Guest, GuestStore
    from droiddeck_session.plan.model import MountPoint

DEFAULT_SUITE: Final = "trixie"
# The guest programs are Python.
ALWAYS: Final = ("python3",)

# How mmdebstrap 1.3 and 1.5 announce their stages, what to call them, and which share of the time is over by then.
STEPS: Final = (
    ("running apt-get update", "fetching the package lists", 0.05),
    ("downloading packages with apt", "downloading packages", 0.15),
    ("extracting archives", "unpacking the essential packages", 0.35),
    ("installing essential packages", "setting up the essential packages", 0.45),
    ("installing remaining packages", "installing the other packages", 0.75),
    ("cleaning package lists", "cleaning up", 0.95),
)
# mmdebstrap copies these from this machine; sessions bind their own over them.
OF_THE_HOST: Final = ("etc/hostname", "etc/resolv.conf")
DISK_FULL: Final = "No space left on device"

_TOOLS: Final = {
    "mmdebstrap": "mmdebstrap",
    "apt-get": "apt",
    "dpkg": "dpkg",
    "unshare": "util-linux",
    "setpriv": "util-linux",
}
_SUITE: Final = re.compile(r"[a-z][a-z0-9.-]*")
# deb-control(5): a name; apt-get(8): an architecture, a version or a release may follow.
_PACKAGE: Final = re.compile(r"[a-z0-9][a-z0-9+.-]+(:[a-z0-9-]+)?([=/][A-Za-z0-9.+:~-]+)?")
# What runs without emulation: of another architecture only these.
_NATIVE_TOO: Final = frozenset({("amd64", "i386"), ("arm64", "armhf"), ("arm64", "armel"), ("armhf", "armel")})
# Debian's architectures as qemu and the kernel's binfmt_misc have them.
_QEMU: Final = {"amd64": "x86_64", "arm64": "aarch64", "armhf": "arm", "armel": "arm", "ppc64el": "ppc64le"}
_BINFMT: Final = "/proc/sys/fs/binfmt_misc/qemu-"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What to make: a guest's name, a Debian suite, an architecture (None: the host's), packages beside the base."""

    name: str
    suite: str = DEFAULT_SUITE
    arch: str | None = None
    include: tuple[str, ...] = ()


def create(
    store: GuestStore,
    recipe: Recipe,
    *,
    cache: Path,
    environ: Mapping[str, str],
    points: Sequence[MountPoint],
    tell: Callable[[str, float], None],
) -> Guest:
    """Make a guest. Interrupted at any point, it leaves nothing that counts as a guest.

    Args:
        store: where it goes.
        recipe: what to make.
        cache: the project's cache folder; keeps archives and logs.
        environ: the caller's environment, which the tools get (proxies are set there).
        points: the fixed mount points.
        tell: gets each step's name and the share of the work that is done when it begins.

    Raises:
        UsageError: a name cannot be meant.
        NotPermittedError: ROOT_NOT_MOUNTED or NO_USER_NAMESPACE.
        FilesError: MISSING_TOOL, NO_KEYRING, FOREIGN_ARCHITECTURE, GUEST_EXISTS, GUEST_BEING_MADE, NO_SPACE,
            CREATE_FAILED.
    """
    _check_words(recipe)
    _require_tools()
    host = os.fsdecode(processes.run(("dpkg", "--print-architecture"), check=True).stdout).strip()
    arch = recipe.arch or host
    _require_architecture(arch, host)
    require_own_mounts()
    if os.geteuid() != 0:
        require_user_namespace()
    with store.reserve(recipe.name) as stage:
        known = cache / "apt" / f"{recipe.suite}-{arch}"
        archives.offer(known, stage.rootfs)
        _bootstrap(stage, recipe, arch, log=cache / "logs" / f"create-{recipe.name}.log", environ=environ, tell=tell)
        if os.geteuid() != 0:
            _take_over(stage, recipe)
        packages = installed(os.fspath(stage.rootfs))
        archives.keep(known, stage.rootfs, packages)
        for name in OF_THE_HOST:
            (stage.rootfs / name).unlink(missing_ok=True)
        make_fixed(os.fspath(stage.rootfs), points)
        return store.commit(stage, _record(recipe, arch, packages))


def _record(recipe: Recipe, arch: str, packages: tuple[Package, ...]) -> GuestRecord:
    return GuestRecord(
        name=recipe.name,
        source=f"suite {recipe.suite}",
        suite=recipe.suite,
        arch=arch,
        packages=versions(packages),
    )


def command(recipe: Recipe, arch: str, rootfs: str, mirrors: Sequence[str], *, root: bool) -> tuple[str, ...]:
    """Return mmdebstrap's command line.

    Args:
        recipe: what to make.
        arch: Debian architecture.
        rootfs: host path of the folder to fill; it holds nothing but archives that apt may use.
        mirrors: lines for the guest's sources.list; none leave the choice to mmdebstrap.
        root: whether the caller is root.
    """
    return (
        "mmdebstrap",
        f"--mode={'root' if root else 'unshare'}",
        "--variant=minbase",
        "--format=directory",
        f"--architectures={arch}",
        f"--include={','.join((*ALWAYS, *recipe.include))}",
        '--aptopt=Acquire::Languages "none"',
        # The archives stay until we have put them into our cache.
        "--skip=check/empty,essential/unlink,cleanup/apt/cache",
        recipe.suite,
        rootfs,
        *mirrors,
    )


def _bootstrap(
    stage: Stage,
    recipe: Recipe,
    arch: str,
    *,
    log: Path,
    environ: Mapping[str, str],
    tell: Callable[[str, float], None],
) -> None:
    root = os.geteuid() == 0
    lines = mirror.sources(recipe.suite, mirror.require_keyring())
    argv = enclosed(command(recipe, arch, os.fspath(stage.rootfs), lines, root=root))
    log.parent.mkdir(parents=True, exist_ok=True)
    disk_full = False

    with log.open("w", encoding="utf-8", errors="surrogateescape") as file:

        def on_line(line: str) -> None:
            nonlocal disk_full
            disk_full = disk_full or DISK_FULL in line
            file.write(line + "\n")
            step = next((step for step in STEPS if line.startswith(f"I: {step[0]}")), None)
            if step is not None:
                tell(step[1], step[2])

        completed = processes.stream(
            argv, on_line=on_line, env={**environ, "TMPDIR": os.fspath(stage.scratch), "LC_ALL": "C"}
        )
    if completed.returncode == 0:
        return
    if disk_full:
        raise no_space(stage)
    # The stage is gone by the time that anybody pastes this, wherever that is.
    elsewhere = f"{tempfile.gettempdir()}/{recipe.name}-rootfs"
    again = processes.pasteable(enclosed(command(recipe, arch, elsewhere, lines, root=root)))
    raise _failed(recipe, completed, f"the whole output: {log}; to see it again: {again}")


def no_space(stage: Stage) -> FilesError:
    """Return the error for a tool that ran out of disk while it filled a stage."""
    return unusable(stage.folder.parent, OSError(errno.ENOSPC, DISK_FULL))


def _take_over(stage: Stage, recipe: Recipe) -> None:
    """Make all files of the rootfs the caller's: those of other ids of its user namespace as well."""
    owner = ("(", "!", "-uid", "0", "-o", "!", "-gid", "0", ")")
    argv = (*USER_NAMESPACE, "find", os.fspath(stage.rootfs), "-xdev", *owner, "-exec", "chown", "-h", "0:0", "{}", "+")
    completed = processes.stream(dying_with_us(argv), on_line=lambda _: None)
    if completed.returncode != 0:
        raise _failed(recipe, completed, "see that newuidmap and newgidmap work: apt-get install --reinstall uidmap")


def _failed(recipe: Recipe, completed: processes.Completed, hint: str) -> FilesError:
    why = processes.failed(completed).message.removeprefix(f"{completed.argv[0]}: ")
    return FilesError(code="CREATE_FAILED", message=f"guest {recipe.name!r} was not made: {why}", hint=hint)


def _check_words(recipe: Recipe) -> None:
    require_name(recipe.name)
    if not _SUITE.fullmatch(recipe.suite):
        raise UsageError(
            code="BAD_SUITE",
            message=f"{recipe.suite!r} is not the name of a Debian suite",
            hint="a suite is named like trixie, stable or sid",
        )
    for package in recipe.include:
        if not _PACKAGE.fullmatch(package):
            raise UsageError(
                code="BAD_PACKAGE",
                message=f"--include: {package!r} is not a package",
                hint="name packages as apt does, separated by commas: --include vim,libc6-dev,git=1:2.47.3-0",
            )


def _require_tools() -> None:
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise FilesError(
            code="MISSING_TOOL",
            message=f"guest create needs {', '.join(missing)}, which this machine does not have",
            hint=f"apt-get install {' '.join(sorted({_TOOLS[tool] for tool in missing}))}",
        )


def _require_architecture(arch: str, host: str) -> None:
    if arch == host or (host, arch) in _NATIVE_TOO:
        return
    emulator = Path(_BINFMT + _QEMU.get(arch, arch))
    if not re.fullmatch(r"[a-z0-9-]+", arch) or not emulator.exists() or shutil.which("arch-test") is None:
        raise FilesError(
            code="FOREIGN_ARCHITECTURE",
            message=f"this machine is {host} and cannot run programs for {arch!r}",
            hint="apt-get install qemu-user-static binfmt-support arch-test, or leave out --arch",
        )
