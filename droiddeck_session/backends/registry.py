# SPDX-License-Identifier: GPL-3.0-or-later
"""The backends by name: found through entry points, probed once, chosen for a session.

A third party's backend registers in the same entry-point group; one that cannot be loaded is named when it is asked
for, and is no reason to fail otherwise.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import hashlib
import importlib.metadata
import json
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from droiddeck_session import __version__
from droiddeck_session.backends.confinement import EVERYTHING
from droiddeck_session.backends.probing import PROBE
from droiddeck_session.backends.programs import fingerprint
from droiddeck_session.backends.scratch import probe_scratch
from droiddeck_session.errors import BackendError
from droiddeck_session.paths import native_file
from droiddeck_session.plan.capabilities import Capabilities
from droiddeck_session.root_mount import root_is_mounted

if TYPE_CHECKING:
    from droiddeck_session.backends.interface import Backend, ProbeRequest

GROUP: Final = "droiddeck_session.backends"
AUTO: Final = ("fastpath", "proot", "bwrap")
_DOCTOR: Final = "run `droiddeck-session doctor` to see what each backend needs"

# What a probe's answer depends on besides the program: limits on tracing and on user namespaces, a plain chroot.
_STATUS_FIELDS: Final = ("Seccomp", "NoNewPrivs", "CapEff", "CapBnd")
_SYSCTLS: Final = (
    "user/max_user_namespaces",
    "kernel/unprivileged_userns_clone",
    "kernel/apparmor_restrict_unprivileged_userns",
    "kernel/yama/ptrace_scope",
)


def names() -> tuple[str, ...]:
    """Return the names of all registered backends, sorted; each loads or is named as broken by `load`."""
    return tuple(sorted({entry.name for entry in _entries(tuple(sys.path))}))


@functools.cache
def _entries(path: tuple[str, ...]) -> tuple[importlib.metadata.EntryPoint, ...]:  # noqa: ARG001 - where they are looked for
    """Return the entry points of all installed packages; it takes 15 ms, and the daemon's sessions share the answer."""
    return tuple(importlib.metadata.entry_points(group=GROUP))


def load(name: str) -> Backend:
    """Return the backend of this name.

    Raises:
        BackendError: there is none, or its entry point cannot be loaded.
    """
    entries = [entry for entry in _entries(tuple(sys.path)) if entry.name == name]
    if not entries:
        known = ", ".join(names()) or "none; is the project installed? (./dev shell)"
        raise BackendError(
            code="UNKNOWN_BACKEND",
            message=f"there is no backend {name!r}",
            hint=f"backends here: {known}",
        )
    try:
        backend: Backend = entries[0].load()()
    except Exception as error:  # a third party's import may fail in any way
        raise BackendError(
            code="BACKEND_BROKEN",
            message=f"the backend {name!r} ({entries[0].value}) cannot be loaded: {type(error).__name__}: {error}",
            hint="update or uninstall the package that brings it",
        ) from error
    return backend


def capabilities(backend: Backend, request: ProbeRequest, cache: Path) -> Capabilities:
    """Return what a backend can do here: from the cache while nothing it depends on has changed, else by its probe.

    An answer that a backend is not available is not kept, so that whatever was repaired is seen at once.

    Args:
        backend: as `load` returned it.
        request: for the probe, but for its scratch folder, which is made here when there is something to probe.
        cache: the project's cache folder; one that cannot be written is done without.
    """
    file = cache / "probes" / f"{backend.name}.json"
    key = _key(backend, request)
    cached = _cached(file, key)
    if cached is not None:
        return cached
    try:
        with probe_scratch() as folder:
            scratch = folder / backend.name
            scratch.mkdir()
            found = backend.probe(dataclasses.replace(request, scratch=str(scratch)))
    except Exception as error:  # noqa: BLE001 - the interface forbids it, but a third party's probe may do anything
        why = f"its probe failed: {type(error).__name__}: {error}"
        return Capabilities(backend=backend.name, available=False, why_not=why, fix=_DOCTOR)
    if found.available:
        _keep(file, key, found)
    return found


def choose(wanted: str, request: ProbeRequest, cache: Path) -> tuple[Backend, Capabilities]:
    """Return the backend for a session, and what it can do.

    Args:
        wanted: a backend's name, or `auto`: the first of `AUTO` that is available and confines.
        request: for the probes.
        cache: the project's cache folder.

    Raises:
        BackendError: the named one is unknown, broken, not available or runs the guest on the host's root; or none
            confines, for `auto`.
    """
    if wanted != "auto":
        return _named(wanted, request, cache)
    reasons = []
    registered = names()
    for name in AUTO:
        if name not in registered:
            continue
        try:
            backend = load(name)
        except BackendError as error:
            reasons.append(f"{name}: {error.message}")
            continue
        found = capabilities(backend, request, cache)
        if found.available and found.confines:
            return backend, found
        reasons.append(f"{name}: {_shortcoming(found)}")
    raise BackendError(
        code="NO_BACKEND",
        message=f"none of the backends that auto takes ({', '.join(AUTO)}) can confine a guest here: "
        + ("; ".join(reasons) or "none is registered"),
        hint="install bubblewrap, or name a backend, such as --backend chroot; " + _DOCTOR,
    )


def _named(name: str, request: ProbeRequest, cache: Path) -> tuple[Backend, Capabilities]:
    backend = load(name)
    found = capabilities(backend, request, cache)
    if not found.available:
        raise BackendError(
            code="BACKEND_UNAVAILABLE",
            message=f"the backend {name} cannot be used here: {found.why_not}",
            hint=found.fix or _DOCTOR,
        )
    if found.rootfs and EVERYTHING in found.leaks:
        raise BackendError(
            code="BACKEND_DOES_NOT_CONFINE",
            message=f"the backend {name} does not confine: {found.program or name} runs the guest on the host's root",
            hint="use another backend, or another program for this one (droiddeck-session settings explain backend)",
        )
    return backend, found


def _shortcoming(found: Capabilities) -> str:
    if not found.available:
        return found.why_not
    return "it runs the guest on the host's root" if EVERYTHING in found.leaks else "leaks " + ", ".join(found.leaks)


def _key(backend: Backend, request: ProbeRequest) -> str:
    status = dict(line.partition(":")[::2] for line in _text("/proc/self/status").splitlines())
    kernel = os.uname()
    parts = (
        __version__,
        backend.cache_key(request),
        fingerprint(str(native_file(PROBE, request.machine))),
        f"{kernel.release} {kernel.version} {kernel.machine}",
        f"{os.geteuid()}:{os.getegid()}",
        f"traced {status.get('TracerPid', '').strip() != '0'}",
        f"root mounted {root_is_mounted()}",
        *(f"{field} {status.get(field, '').strip()}" for field in _STATUS_FIELDS),
        *(f"{name} {_text(f'/proc/sys/{name}')}" for name in _SYSCTLS),
    )
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _cached(file: Path, key: str) -> Capabilities | None:
    try:
        document = json.loads(_plain_file(file))
        return Capabilities.model_validate(document["capabilities"]) if document["key"] == key else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _plain_file(file: Path) -> bytes:
    """Return what a file holds.

    Raises:
        OSError: it cannot be read, or is none: a fifo would keep us waiting for what it says.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - of a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(file))
        return opened.read()


def _keep(file: Path, key: str, found: Capabilities) -> None:
    text = json.dumps({"key": key, "capabilities": found.model_dump()})
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("w", encoding="ascii") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)
    except OSError:
        # Without a cache the next start probes again; that is all.
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
