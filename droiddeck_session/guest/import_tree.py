# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking in a rootfs that was made elsewhere: an archive that the system's tar can read, or a folder.

An archive may be hostile. GNU tar makes links that lead up or to the root only after everything else, so no member is
written through one; names led by `/` lose it; a name that climbs with `..` is refused here. Nothing that comes from the
archive is run. Device nodes need root: without it they are left out, and a session binds the host's /dev anyway.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from droiddeck_session import processes
from droiddeck_session.errors import FilesError, UsageError
from droiddeck_session.guest.create import DISK_FULL, no_space
from droiddeck_session.guest.mount_points import make_fixed
from droiddeck_session.guest.namespaces import dying_with_us
from droiddeck_session.guest.packages import architecture, installed, versions
from droiddeck_session.guest.store import NEEDED, GuestRecord
from droiddeck_session.rootfs import look_up
from droiddeck_session.settings import GUEST_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from droiddeck_session.guest.stages import Stage
    from droiddeck_session.guest.store import Guest, GuestStore
    from droiddeck_session.plan.model import MountPoint

_ARCHIVE_SUFFIX: Final = re.compile(r"\.(tar(\.[a-z0-9]+)?|t[gxz]z|tzst|tbz2?)$", re.IGNORECASE)
# GNU tar, xheader and extract.c: "Removing leading `../../' from member names" (hard link targets likewise).
_CLIMBING: Final = re.compile(r"Removing leading .(?P<prefix>.*\.\..*/).\s+from")
# GNU tar, system.c: what unpacks a compressed archive could not be started. Debian's packages of other names.
_CANNOT_UNPACK: Final = re.compile(r"\(child\): (?P<program>[^\s:]+): Cannot exec")
_PACKAGES: Final = {"xz": "xz-utils"}
_NO_DEVICE: Final = ("Cannot mknod: Operation not permitted", "cannot create special file")
_LAST_WORDS: Final = "Exiting with failure status due to previous errors"


def default_name(source: str) -> str:
    """Return the guest's name that a file or folder suggests.

    Raises:
        UsageError: BAD_GUEST_NAME: it suggests none.
    """
    stem = _ARCHIVE_SUFFIX.sub("", Path(source).absolute().name)
    name = re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).lstrip("._-")[:64]
    if GUEST_NAME.fullmatch(name):
        return name
    raise UsageError(
        code="BAD_GUEST_NAME",
        message=f"{source!r} suggests no name for the guest",
        hint="give one: droiddeck-session guest import SOURCE NAME",
    )


def import_tree(store: GuestStore, source: str, name: str, *, points: Sequence[MountPoint]) -> tuple[Guest, int]:
    """Make a guest from an archive or a folder; the source is only read.

    Args:
        store: where it goes.
        source: path of the archive or folder.
        name: of the new guest.
        points: the fixed mount points.

    Returns:
        The guest, and how many device nodes were left out.

    Raises:
        FilesError: NO_SOURCE, MISSING_TOOL, BAD_ARCHIVE, HOSTILE_ARCHIVE, IMPORT_FAILED, NOT_A_ROOTFS, MOUNT_POINT,
            GUEST_EXISTS, NO_SPACE; nothing is left.
    """
    if not source:
        raise _no_source(source, "its name is empty")
    path = os.fspath(Path(source).absolute())
    is_folder = _is_folder(path)
    with store.reserve(name) as stage:
        left_out = _copy(path, stage) if is_folder else _unpack(path, stage)
        root = os.fspath(stage.rootfs)
        if not look_up(root, NEEDED).executable:
            raise FilesError(
                code="NOT_A_ROOTFS",
                message=f"{source!r} holds no executable {NEEDED}, so it is no rootfs; nothing was imported",
                hint=_nested_hint(stage),
            )
        make_fixed(root, points)
        packages = installed(root)
        record = GuestRecord(name=name, source=path, arch=architecture(packages), packages=versions(packages))
        return store.commit(stage, record), left_out


def _is_folder(path: str) -> bool:
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise _no_source(path, error.strerror or "cannot be read") from error
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise _no_source(path, "neither a folder nor a file")
    return stat.S_ISDIR(mode)


def _no_source(path: str, why: str) -> FilesError:
    return FilesError(
        code="NO_SOURCE",
        message=f"{path!r} cannot be imported: {why}",
        hint="give a tar archive of a rootfs, or the top folder of one",
    )


def _nested_hint(stage: Stage) -> str:
    inside = [entry for entry in sorted(stage.rootfs.iterdir()) if entry.is_dir() and not entry.is_symlink()]
    if len(inside) == 1 and look_up(os.fspath(inside[0]), NEEDED).executable:
        return f"the rootfs is its folder {inside[0].name!r}: unpack it and import that folder"
    return "import the top folder of a whole Linux system, or an archive of one"


def _unpack(path: str, stage: Stage) -> int:
    owner = "--same-owner" if os.geteuid() == 0 else "--no-same-owner"
    argv = (
        "tar", "--extract", f"--file={path}", f"--directory={stage.rootfs}", "--force-local",
        "--numeric-owner", "--preserve-permissions", owner,
    )  # fmt: skip
    return _run(argv, path, stage, code="BAD_ARCHIVE")


def _copy(path: str, stage: Stage) -> int:
    real = os.path.realpath(path)
    store = os.path.realpath(stage.folder.parent)
    if f"{store}/".startswith(f"{real.rstrip('/')}/"):
        raise _no_source(path, f"the store of guests, {store!r}, lies in it")
    argv = ("cp", "--archive", "--reflink=auto", "--one-file-system", "--", f"{real}/.", os.fspath(stage.rootfs))
    return _run(argv, path, stage, code="IMPORT_FAILED")


def _run(argv: tuple[str, ...], path: str, stage: Stage, *, code: str) -> int:
    """Run tar or cp and judge what it says; return how many device nodes it could not make."""
    said: list[str] = []
    # Not the caller's environment: TAR_OPTIONS would change what tar does.
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    completed = processes.stream(dying_with_us(argv), on_line=said.append, env=environment)
    for line in said:
        lacking = _CANNOT_UNPACK.search(line)
        if lacking is not None:
            program = lacking["program"]
            raise FilesError(
                code="MISSING_TOOL",
                message=f"{path!r} was not imported: tar needs {program}, which this machine does not have",
                hint=f"apt-get install {_PACKAGES.get(program, program)}",
            )
        climbing = _CLIMBING.search(line)
        if climbing is not None:
            raise FilesError(
                code="HOSTILE_ARCHIVE",
                message=f"{path!r} has members that climb out of it by {climbing['prefix']!r}; nothing was imported",
                hint="a rootfs's archive has no such names; get it from where you trust",
            )
    if completed.returncode == 0:
        return 0
    if any(DISK_FULL in line for line in said):
        raise no_space(stage)
    devices = [line for line in said if os.geteuid() != 0 and any(reason in line for reason in _NO_DEVICE)]
    faults = [line for line in said if line not in devices and _LAST_WORDS not in line]
    if devices and not faults:
        return len(devices)
    raise FilesError(
        code=code,
        message=f"{path!r} was not imported: {faults[0] if faults else processes.ending(completed.returncode)}",
        hint=f"to see it again: {_elsewhere(argv, stage)}",
    )


def _elsewhere(argv: tuple[str, ...], stage: Stage) -> str:
    """Return the line that does the same again in a folder that is there then; the stage is not."""
    folder = f"{tempfile.gettempdir()}/{stage.name}-rootfs"
    again = [word.replace(os.fspath(stage.rootfs), folder) for word in argv]
    return f"{processes.pasteable(('mkdir', folder))} && {processes.pasteable(again)}"
