# SPDX-License-Identifier: GPL-3.0-or-later
"""Benchmarks, as `./dev bench NAME` runs them: JSON with the machine, and ratios within one run.

`launch` compares `droiddeck-session run -- true` with the bare host command of the same plan.
The two take turns, in swapped order each round, so a machine that slows down slows both. `tracer` is bench_tracer.py.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from droiddeck_session import __version__, processes
from droiddeck_session.diagnostics import bench_daemon, bench_table, bench_tracer
from droiddeck_session.errors import DroiddeckError
from droiddeck_session.plan.request import Request
from droiddeck_session.session.launch import staged_command
from droiddeck_session.session.prepare import prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from droiddeck_session.backends.interface import HostCommand

BACKENDS: Final = ("bwrap", "chroot", "fastpath", "proot", "direct")
PROGRAM: Final = "true"
ROUNDS: Final = 15
# The first starts fill the page cache, the probe's cache and Python's bytecode.
WARM_UP: Final = 2
# Design, section 5: what `run` may add to the backend's bare command.
MUST_MS: Final = 350
GOAL_MS: Final = 200


def launch(backends: Sequence[str], rounds: int, environ: Mapping[str, str]) -> dict[str, Any]:
    """Measure what `run` adds to each backend's bare command.

    Args:
        backends: names of backends.
        rounds: how often each of the two is timed.
        environ: the caller's environment; its default guest is used, its session folders are not.
    """
    state = tempfile.mkdtemp(prefix="droiddeck-bench-")
    try:
        own = {**environ, "XDG_STATE_HOME": state}
        return {name: _launch(name, rounds, own) for name in backends}
    finally:
        shutil.rmtree(state, ignore_errors=True)


def _launch(backend: str, rounds: int, environ: Mapping[str, str]) -> dict[str, Any]:
    try:
        request = Request(kind="run", argv=(PROGRAM,))
        command, _ = staged_command(prepare(request, {"backend.name": backend}, environ=environ))
        ours = (sys.executable, "-m", "droiddeck_session", "run", "--backend", backend, "--", PROGRAM)
        bare_ms, run_ms = _taking_turns(
            lambda: _timed_command(command),
            lambda: _timed(ours, env=environ),
            rounds,
        )
    except DroiddeckError as error:
        return {"skipped": error.message}
    over = [ours - bare for ours, bare in zip(run_ms, bare_ms, strict=True)]
    return {
        "bare_ms": quantiles(bare_ms),
        "run_ms": quantiles(run_ms),
        "over_ms": quantiles(over),
        "ratio": quantiles([ours / bare for ours, bare in zip(run_ms, bare_ms, strict=True)]),
        "must": statistics.median(over) <= MUST_MS,
        "goal": statistics.median(over) <= GOAL_MS,
    }


def _taking_turns(
    first: Callable[[], float], second: Callable[[], float], rounds: int
) -> tuple[list[float], list[float]]:
    times: tuple[list[float], list[float]] = ([], [])
    turns = ((0, first), (1, second))
    for number in range(WARM_UP + rounds):
        for place, measure in turns if number % 2 else reversed(turns):
            taken = measure()
            if number >= WARM_UP:
                times[place].append(taken)
    return times


def _timed_command(command: HostCommand) -> float:
    return _timed(command.argv, env=command.env, cwd=command.cwd)


def _timed(argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None = None) -> float:
    """Return the milliseconds from the start of a program to its end.

    Raises:
        ProcessError: it failed, so its time means nothing.
    """
    start = time.perf_counter()
    processes.run(argv, env=env, cwd=cwd, time_limit=60, check=True)
    return (time.perf_counter() - start) * 1000


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Return median, tenth and ninetieth percentile, least and greatest, to three digits behind the point."""
    tenths = statistics.quantiles(values, n=10, method="inclusive") if len(values) > 1 else [values[0]] * 9
    found = {
        "median": statistics.median(values),
        "p10": tenths[0],
        "p90": tenths[-1],
        "min": min(values),
        "max": max(values),
    }
    return {name: round(value, 3) for name, value in found.items()}


def machine() -> dict[str, object]:
    """Return what a figure means nothing without."""
    lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "CPU part"))]
    return {
        "cpu": models[0] if models else "unknown",
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "uid": os.geteuid(),
        "version": __version__,
    }


def main(arguments: Sequence[str]) -> int:
    """Run one benchmark and print its JSON."""
    parser = argparse.ArgumentParser(prog="./dev bench", description="Benchmarks; each prints one JSON object.")
    parser.add_argument(
        "name",
        choices=list(MEASURES),
        help="launch: what `run` adds to a backend's bare command; daemon: the same through one, and what it costs; "
        "tracer: calls, threads, exec and programs",
    )
    parser.add_argument("--backend", action="append", choices=BACKENDS, help="only this backend; may be given again")
    parser.add_argument(
        "--rounds",
        type=int,
        help=f"times that each figure is taken ({ROUNDS}, for tracer {bench_tracer.ROUNDS})",
    )
    parser.add_argument("--table", action="store_true", help="tracer: Markdown tables instead of JSON")
    given = parser.parse_args(arguments)
    if given.table and given.name != "tracer":
        parser.error("--table is for tracer")
    if given.rounds is not None and given.rounds < 1:
        parser.error("--rounds must be 1 or more")
    environ = dict(os.environ)
    try:
        measured = MEASURES[given.name](given.backend, given.rounds, environ)
    except DroiddeckError as error:
        sys.stderr.write(f"{error.message}\n  hint: {error.hint}\n")
        return error.exit_status
    if given.table:
        sys.stdout.write(bench_table.tables(measured, bench_tracer.NATIVE) + "\n")
        return 0
    sys.stdout.write(json.dumps({"benchmark": given.name, "machine": machine(), **measured}, indent=1) + "\n")
    return 0


def _launches(backends: Sequence[str] | None, rounds: int | None, environ: Mapping[str, str]) -> dict[str, Any]:
    taken = rounds or ROUNDS
    found = launch(backends or BACKENDS, taken, environ)
    return {"rounds": taken, "over": {"must_ms": MUST_MS, "goal_ms": GOAL_MS}, "backends": found}


def _tracers(backends: Sequence[str] | None, rounds: int | None, environ: Mapping[str, str]) -> dict[str, Any]:
    taken = rounds or bench_tracer.ROUNDS
    return {"rounds": taken, **bench_tracer.tracer(backends or bench_tracer.BACKENDS, taken, environ)}


def _daemon(backends: Sequence[str] | None, rounds: int | None, environ: Mapping[str, str]) -> dict[str, Any]:
    def bare(name: str) -> Callable[[Mapping[str, str]], Callable[[], float]]:
        def make(own: Mapping[str, str]) -> Callable[[], float]:
            request = Request(kind="run", argv=(PROGRAM,))
            command, _ = staged_command(prepare(request, {"backend.name": name}, environ=own))
            return lambda: _timed_command(command)

        return make

    taken = rounds or ROUNDS
    measures = {name: bare(name) for name in backends or BACKENDS}
    return {
        "rounds": taken,
        **bench_daemon.daemon(measures, _in_environment, _taking_turns, rounds=taken, environ=environ),
    }


def _in_environment(argv: Sequence[str], environ: Mapping[str, str]) -> float:
    return _timed(argv, env=environ)


MEASURES: Final = {"launch": _launches, "daemon": _daemon, "tracer": _tracers}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
