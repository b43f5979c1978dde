# SPDX-License-Identifier: GPL-3.0-or-later
"""`./dev bench daemon`: what verbs cost through a daemon, and what a daemon costs that has an idle session."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from droiddeck_session.errors import DroiddeckError
from droiddeck_session.processes import run, spawn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Measure = Callable[[], float]
    MakeMeasure = Callable[[Mapping[str, str]], Measure]
    Timed = Callable[[Sequence[str], Mapping[str, str]], float]
    Turns = Callable[[Measure, Measure, int], tuple[list[float], list[float]]]

# Design, section 5.
STATUS_MUST_MS, STATUS_GOAL_MS = 120, 80
RUN_MUST_MS, RUN_GOAL_MS = 120, 60
RESIDENT_MUST_MIB, RESIDENT_GOAL_MIB = 60, 45
WAKE_UPS_MUST: Final = 1.0
_IDLE_SECONDS: Final = 10.0
_MIB: Final = 1 << 20
_OURS: Final = (sys.executable, "-m", "droiddeck_session")


def daemon(
    bare: Mapping[str, MakeMeasure],
    timed: Timed,
    turns: Turns,
    *,
    rounds: int,
    environ: Mapping[str, str],
) -> dict[str, Any]:
    """Measure a daemon of its own.

    Args:
        bare: by backend, what makes a measure of the backend's bare command in an environment.
        timed: gives the milliseconds of a command line.
        turns: lets two measures take turns.
        rounds: how often each figure is taken.
        environ: the caller's environment; its default guest is used, its session folders and daemon are not.
    """
    folder = tempfile.mkdtemp(prefix="droiddeck-bench-")
    own = {**environ, "XDG_STATE_HOME": f"{folder}/state", "XDG_RUNTIME_DIR": folder}
    program = spawn((*_OURS, "daemon"), env=own, cwd=folder)
    try:
        _until_it_answers(own)
        status = [timed((*_OURS, "status", "--json"), own) for _ in range(rounds)]
        found: dict[str, Any] = {
            "status_ms": _summary(status, STATUS_MUST_MS, STATUS_GOAL_MS),
            "run": {
                name: _run(name, make, timed=timed, turns=turns, rounds=rounds, environ=own)
                for name, make in bare.items()
            },
        }
        run((*_OURS, "start", "run", "--backend", "direct", "--wait", "--", "sleep", "600"), env=own, check=True)
        return found | {"idle": _idle(own)}
    finally:
        program.process.terminate()
        program.process.wait()
        os.close(program.pidfd)
        shutil.rmtree(folder, ignore_errors=True)


def _run(
    backend: str,
    make: MakeMeasure,
    *,
    timed: Timed,
    turns: Turns,
    rounds: int,
    environ: Mapping[str, str],
) -> dict[str, Any]:
    try:
        ours = (*_OURS, "run", "--backend", backend, "--", "true")
        bare_ms, run_ms = turns(make(environ), lambda: timed(ours, environ), rounds)
    except DroiddeckError as error:
        return {"skipped": error.message}
    over = [through - plain for plain, through in zip(bare_ms, run_ms, strict=True)]
    return {"bare_ms": statistics.median(bare_ms), "over_ms": _summary(over, RUN_MUST_MS, RUN_GOAL_MS)}


def _summary(values: Sequence[float], must: float, goal: float) -> dict[str, Any]:
    median = statistics.median(values)
    rounded = {"median": round(median, 1), "min": round(min(values), 1), "max": round(max(values), 1)}
    return {**rounded, "must": median <= must, "goal": median <= goal}


def _idle(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return memory and wake-ups of the daemon's processes while one session idles."""
    told = json.loads(run((*_OURS, "status", "--json"), env=environ, check=True).stdout)
    pids = {
        "daemon": told["daemon"]["pid"],
        "spawner": told["daemon"]["spawner"],
        "worker": told["sessions"][-1]["pid"],
    }
    before = {name: _switches(pid) for name, pid in pids.items()}
    time.sleep(_IDLE_SECONDS)
    wake_ups = {name: (_switches(pid) - before[name]) / _IDLE_SECONDS for name, pid in pids.items()}
    resident = {name: _memory(pid, "Rss") for name, pid in pids.items()}
    return {
        "resident_mib": resident,
        "proportional_mib": {name: _memory(pid, "Pss") for name, pid in pids.items()},
        "must": resident["daemon"] <= RESIDENT_MUST_MIB and max(wake_ups.values()) <= WAKE_UPS_MUST,
        "goal": resident["daemon"] <= RESIDENT_GOAL_MIB and max(wake_ups.values()) == 0,
        "wake_ups_per_second": wake_ups,
    }


def _switches(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return sum(int(line.split(":")[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def _memory(pid: int, kind: str) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    kib = next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:"))
    return round(kib * 1024 / _MIB, 1)


def _until_it_answers(environ: Mapping[str, str]) -> None:
    while run((*_OURS, "status"), env=environ).returncode != 0:
        time.sleep(0.05)
