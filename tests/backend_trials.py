# SPDX-License-Identifier: GPL-3.0-or-later
"""Running backends on real rootfs trees in tests, as the caller and as a user without rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from droiddeck_fastpath import backend as fastpath
from droiddeck_proot.backend import ProotBackend
from droiddeck_session.backends import chroot, probing, ptrace_check
from droiddeck_session.backends.bwrap import BwrapBackend
from droiddeck_session.backends.chroot import ChrootBackend
from droiddeck_session.backends.direct import DirectBackend
from droiddeck_session.backends.interface import Backend, ProbeRequest
from droiddeck_session.paths import native_file
from droiddeck_session.plan.capabilities import Capabilities
from droiddeck_session.plan.guest_paths import in_mount_order
from droiddeck_session.plan.model import Bind, FastPath, GuestReference, Identity, Plan, Variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BACKENDS: dict[str, type[Backend]] = {
    "direct": DirectBackend,
    "bwrap": BwrapBackend,
    "chroot": ChrootBackend,
    "proot": ProotBackend,
    "fastpath": fastpath.FastpathBackend,
}
# Nobody's uid: no passwd entry, no groups, no rights.
STRANGER = 54321
# A Python that the stranger may run; that of the tests can lie in somebody's home.
PYTHON = "/usr/bin/python3"
TIME_LIMIT = 30


# As root of a user namespace where the caller is not root already.
IN_A_MOUNT_NAMESPACE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]

# A process that cannot use ptrace: a seccomp filter that answers EPERM, as a container's does, then exec.
DENY_PTRACE = r"""
import ctypes, os, platform, struct, sys
NR_PTRACE = {"x86_64": 101, "aarch64": 117}[platform.machine()]
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LD_W_ABS, JEQ_K, RET_K = 0x20, 0x15, 0x06
program = b"".join(struct.pack("HBBI", *row) for row in (
    (LD_W_ABS, 0, 0, 0), (JEQ_K, 0, 1, NR_PTRACE), (RET_K, 0, 0, 0x00050000 | 1), (RET_K, 0, 0, 0x7FFF0000)))
text = ctypes.create_string_buffer(program)
class Fprog(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
filter = Fprog(len(program) // 8, ctypes.addressof(text))
assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


@dataclass(frozen=True)
class Person:
    """Who runs a backend."""

    uid: int
    gid: int

    @property
    def is_caller(self) -> bool:
        return self.uid == os.geteuid()


CALLER = Person(os.geteuid(), os.getegid())
PEOPLE = {"caller": CALLER} | ({"stranger": Person(STRANGER, STRANGER)} if CALLER.uid == 0 else {})


def probe_request(scratch: Path, **programs: str) -> ProbeRequest:
    return ProbeRequest(
        environ={"PATH": os.environ["PATH"]}, programs=programs, scratch=str(scratch), machine=os.uname().machine
    )


@contextmanager
def open_folder(person: Person = CALLER) -> Iterator[Path]:
    """A folder that this person owns and everybody can reach (pytest's own is closed to strangers)."""
    with tempfile.TemporaryDirectory(prefix="droiddeck-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        os.chown(folder, person.uid, person.gid)
        yield folder


def probe(backend: Backend, person: Person) -> Capabilities:
    """Probe a backend as this person."""
    with open_folder(person) as scratch:
        if person.is_caller:
            return backend.probe(probe_request(scratch))
        return _probe_as(backend, person, scratch)


def _probe_as(backend: Backend, person: Person, scratch: Path) -> Capabilities:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            sys.executable = PYTHON
            os.setgroups([])
            os.setresgid(person.gid, person.gid, person.gid)
            os.setresuid(person.uid, person.uid, person.uid)
            found = backend.probe(probe_request(scratch))
            os.write(writer, found.model_dump_json().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return Capabilities.model_validate_json(answer)


@contextmanager
def reachable_parts() -> Iterator[None]:
    """Native programs and entering program where a stranger can reach them, wherever the checkout is."""
    with open_folder() as folder:
        for name in ("confinement-probe", fastpath.TRACER, fastpath.LOADER):
            shutil.copy(native_file(name, os.uname().machine), folder / name)

        def copied(name: str, machine: str) -> Path:
            return folder / name if machine == os.uname().machine else native_file(name, machine)

        enter = shutil.copy(chroot.ENTER, folder / "chroot_enter.py")
        with pytest.MonkeyPatch.context() as patch:
            for module in (probing, ptrace_check, fastpath):
                patch.setattr(module, "native_file", copied)
            patch.setattr(chroot, "ENTER", str(enter))
            yield


def bind(host: Path | str, guest: str, *, read_only: bool = False) -> Bind:
    host = os.fspath(host)
    return Bind(
        host=host, guest=guest, reason="a test", origin="test", read_only=read_only, directory=Path(host).is_dir()
    )


def make_plan(
    root: Path,
    argv: Sequence[str],
    *,
    session: Path,
    binds: Sequence[Bind] = (),
    environment: dict[str, str] | None = None,
    cwd: str = "/srv",
    person: Person = CALLER,
    **changes: object,
) -> Plan:
    (session / "tracer").mkdir(exist_ok=True)
    os.chown(session / "tracer", person.uid, person.gid)
    plan = Plan(
        kind="run",
        label="test",
        guest=GuestReference(name="demo", root=str(root)),
        backend="test",
        identity=Identity(uid=person.uid, gid=person.gid),
        kernel_release=None,
        nodename=None,
        cwd=cwd,
        binds=tuple(in_mount_order(binds, lambda entry: entry.guest)),
        environment=tuple(
            Variable(name=name, value=value, origin="test")
            for name, value in (environment or {"PATH": "/usr/bin:/bin"}).items()
        ),
        argv=tuple(argv),
        fast_path=FastPath(enabled=False, why_off="test"),
        session=str(session),
    )
    return plan.model_copy(update=changes)


def run(
    backend: Backend, capabilities: Capabilities, plan: Plan, person: Person = CALLER, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a plan as this person, with nothing of the caller's environment."""
    host = backend.command(plan, capabilities)
    if not person.is_caller:
        host = replace(host, argv=tuple(PYTHON if word == sys.executable else word for word in host.argv))
    return subprocess.run(
        host.argv,
        env=dict(host.env),
        cwd=host.cwd,
        input=stdin,
        capture_output=True,
        timeout=TIME_LIMIT,
        check=False,
        user=None if person.is_caller else person.uid,
        group=None if person.is_caller else person.gid,
        extra_groups=None if person.is_caller else [],
    )
