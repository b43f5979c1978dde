# SPDX-License-Identifier: GPL-3.0-or-later
"""`./dev bench tracer`: what path calls, threads, exec and whole programs cost under each backend.

All backends take turns in each round, in an order that moves on, so what slows the machine down slows each of them.
`native` is the chroot backend: the same files without a tracer. Pinned means that tracer and guest share one core.
How often a call is stopped is counted, not timed (backends/fastpath/bench/calls.c).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from droiddeck_session import facts, paths, processes, settings
from droiddeck_session.backends import registry
from droiddeck_session.backends.confinement import EVERYTHING
from droiddeck_session.errors import FilesError
from droiddeck_session.guest.store import GuestStore, use
from droiddeck_session.plan.model import Bind, FastPath, GuestReference, Identity, Plan, Variable
from droiddeck_session.session.prepare import probe_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from droiddeck_session.backends.interface import Backend
    from droiddeck_session.plan.capabilities import Capabilities

NATIVE: Final = "chroot"
BACKENDS: Final = (NATIVE, "bwrap", "proot", "fastpath")
ROUNDS: Final = 3
SECONDS: Final = 0.2
_TIME_LIMIT: Final = 300.0
# Every Debian has this folder; the bench's own is bound there.
_PLACE: Final = "/mnt"
_FOLDERS, _FILES = 27, 100
_MODULES: Final = "json, argparse, subprocess, logging, tempfile, threading, socket, random, decimal, urllib.request"
PROGRAMS: Final = {
    "python3, 10 imports": ("python3", "-ISBc", f"import {_MODULES}"),
    "tar, 2.7k files": ("sh", "-c", f"tar -cf - -C {_PLACE} tree | cat"),
    "ls -lR, 2.7k files": ("ls", "-lR", f"{_PLACE}/tree"),
    "find -size, 2.7k files": ("find", f"{_PLACE}/tree", "-size", "+1"),
    "cp -r, 2.7k files": ("cp", "-r", f"{_PLACE}/tree", f"{_PLACE}/copy"),
    "sh, 50 x true": ("sh", "-c", "i=0; while [ $i -lt 50 ]; do /bin/true; i=$((i+1)); done"),
    "python3, no import": ("python3", "-ISBc", "pass"),
    # Where the guest has them.
    "git status, 2.7k files": ("git", "-C", f"{_PLACE}/repository", "status"),
    "gcc, hello": ("gcc", "-o", f"{_PLACE}/hello", f"{_PLACE}/hello.c"),
}
_REPOSITORY: Final = f"cp -r {_PLACE}/tree {_PLACE}/repository && cd {_PLACE}/repository && git init -q && git add ."
_HELLO: Final = '#include <stdio.h>\nint main(void) { return puts("hello") == EOF; }\n'

# How many decimals a figure has that says anything.
_DIGITS: Final = 3


@dataclass(frozen=True, kw_only=True)
class Stand:
    """Where and how one backend is measured."""

    backend: Backend
    capabilities: Capabilities
    root: str
    folder: str

    def run(self, words: Sequence[str], *, core: int | None) -> str:
        """Run the bench's program in the guest and return what it printed.

        Raises:
            ProcessError: it failed, so its time means nothing.
        """
        plan = self._plan(words)
        host = self.backend.command(plan, self.capabilities)
        pinned = () if core is None else ("taskset", "--cpu-list", str(core))
        done = processes.run((*pinned, *host.argv), env=host.env, cwd=host.cwd, time_limit=_TIME_LIMIT, check=True)
        return done.stdout.decode()

    def calls(self, seconds: float, *, core: int | None) -> tuple[dict[str, float | None], dict[str, float]]:
        """Time the calls, each for about so many seconds.

        Returns:
            Microseconds by name, None for a call that is answered wrongly, and how often one call waits.

        Raises:
            ProcessError: the bench's program failed.
        """
        times, waits = map(json.loads, self.run((_PLACE + "/deep", str(seconds)), core=core).splitlines())
        return times, waits

    def _plan(self, words: Sequence[str]) -> Plan:
        binds = ((self.folder, _PLACE), ("/proc", "/proc"), ("/dev", "/dev"))
        return Plan(
            kind="run",
            label="bench",
            guest=GuestReference(name="bench", root=self.root),
            backend=self.backend.name,
            identity=Identity(uid=os.geteuid(), gid=os.getegid()),
            kernel_release=None,
            nodename=None,
            cwd="/",
            binds=tuple(
                Bind(host=host, guest=guest, reason="bench", origin="bench", directory=True) for host, guest in binds
            ),
            environment=(Variable(name="PATH", value="/usr/bin:/bin", origin="bench"),),
            argv=(f"{_PLACE}/calls", *words),
            fast_path=FastPath(enabled=False, why_off="the tracer is measured"),
            session=f"{self.folder}/session",
        )


def tracer(
    backends: Sequence[str], rounds: int, environ: Mapping[str, str], *, seconds: float = SECONDS,
    programs: Mapping[str, Sequence[str]] = PROGRAMS,
) -> dict[str, Any]:  # fmt: skip
    """Measure each backend, pinned and not.

    Args:
        backends: names; the native one is always measured, for the ratios.
        rounds: how often each figure is taken; the median counts.
        environ: the caller's environment; its default guest is used.
        seconds: for each call in each round.
        programs: command lines by name.
    """
    wanted = tuple(dict.fromkeys((NATIVE, *backends)))
    # In memory if there is such a folder: a disk's own times are not the tracer's.
    memory = "/dev/shm"  # noqa: S108 - a folder of our own is made in it
    folder = tempfile.mkdtemp(prefix="droiddeck-bench-", dir=memory if os.access(memory, os.W_OK) else None)
    try:
        _lay_out(folder)
        stands, skipped = _stands(wanted, environ, folder)
        core = max(os.sched_getaffinity(0))
        with use(GuestStore(paths.directories(environ)).find(_guest(environ))):
            with contextlib.suppress(processes.ProcessError):  # no git, no figure of it
                stands[NATIVE].run(("run", "sh", "-c", _REPOSITORY), core=core)
            return {
                "skipped": skipped,
                "stops": _stops(stands, core),
                "pinned": _measured(stands, rounds, seconds, programs, core=core),
                "unpinned": _measured(stands, rounds, seconds, programs, core=None),
            }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(
    stands: Mapping[str, Stand], rounds: int, seconds: float, programs: Mapping[str, Sequence[str]], *, core: int | None
) -> dict[str, Any]:
    times: dict[str, dict[str, list[float]]] = {}
    names = list(stands)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            for what, taken in _one_turn(stands[name], seconds, programs, core):
                times.setdefault(what, {}).setdefault(name, []).append(taken)
    return {what: _figures(by_name) for what, by_name in times.items()}


def _stops(stands: Mapping[str, Stand], core: int) -> dict[str, dict[str, float]]:
    """Return how often a tracer stops each call: how often it waits, less how often it does without a tracer."""
    waits = {name: stand.calls(0, core=core)[1] for name, stand in stands.items()}
    return {
        call: {
            name: round(max(counted[call] - without, 0), 1)
            for name, counted in waits.items()
            if name != NATIVE and call in counted
        }
        for call, without in waits[NATIVE].items()
    }


def _one_turn(
    stand: Stand, seconds: float, programs: Mapping[str, Sequence[str]], core: int | None
) -> Iterator[tuple[str, float]]:
    times, _ = stand.calls(seconds, core=core)
    # A call that the backend answers wrongly (it is for `verify` to say how) has no time.
    yield from ((f"{name}, us", taken) for name, taken in times.items() if taken is not None)
    for name, words in programs.items():
        with contextlib.suppress(processes.ProcessError):  # as above: it has no time
            yield f"{name}, ms", float(stand.run(("run", *words), core=core))
        shutil.rmtree(f"{stand.folder}/copy", ignore_errors=True)


def _figures(by_name: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    native = statistics.median(by_name[NATIVE])
    return {
        name: {
            "median": round(statistics.median(taken), _DIGITS),
            "min": round(min(taken), _DIGITS),
            "max": round(max(taken), _DIGITS),
            "ratio": round(statistics.median(taken) / native, _DIGITS),
        }
        for name, taken in by_name.items()
    }


def _stands(wanted: Sequence[str], environ: Mapping[str, str], folder: str) -> tuple[dict[str, Stand], dict[str, str]]:
    directories = paths.directories(environ)
    loaded = settings.load(directories=directories, environ=environ, flags={})
    guest = GuestStore(directories).find(loaded.settings.guest.name)
    stands, skipped = {}, {}
    request = probe_request(environ, loaded, machine=facts.uname().machine)
    for name in wanted:
        backend = registry.load(name)
        shown = registry.capabilities(backend, request, directories.cache)
        if shown.available and EVERYTHING not in shown.leaks:
            stands[name] = Stand(backend=backend, capabilities=shown, root=guest.root, folder=folder)
        else:
            skipped[name] = shown.why_not or "it runs the guest on the host's root"
    if NATIVE not in stands:
        raise FilesError(
            code="NO_BASELINE", message=f"nothing to compare with: {skipped[NATIVE]}", hint="run it as root"
        )
    return stands, skipped


def _guest(environ: Mapping[str, str]) -> str:
    return settings.load(directories=paths.directories(environ), environ=environ, flags={}).settings.guest.name


def _lay_out(folder: str) -> None:
    """Make the tree that programs walk, and put the bench's program beside it."""
    program = paths.native_file("bench/calls", facts.uname().machine)
    if not program.is_file():
        raise FilesError(code="NOT_BUILT", message=f"{program} is not built", hint="run `make bench` in the checkout")
    shutil.copy(program, folder)
    for name in ("session/tracer", "deep"):
        Path(folder, name).mkdir(parents=True)
    Path(folder, "hello.c").write_text(_HELLO)
    for number in range(_FOLDERS):
        below = Path(folder, "tree", f"folder-{number}")
        below.mkdir(parents=True)
        for file in range(_FILES):
            (below / f"file-{file}").write_text("x" * (100 * (file % 40)))
