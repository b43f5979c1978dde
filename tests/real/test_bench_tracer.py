# SPDX-License-Identifier: GPL-3.0-or-later
"""`./dev bench tracer`: that it measures what it says; how fast anything is, no test decides."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT

from droiddeck_session.diagnostics import bench_tracer
from droiddeck_session.diagnostics.bench_table import tables

if TYPE_CHECKING:
    from conftest import CommandLine

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
CALLS = {"stat deep, us", "open+close, us", "access, us", "missing, us", "missing dir, us", "fstatat dirfd, us"}
CALLS |= {
    "stat shallow, us",
    "rename twice, us",
    "readlink, us",
    "getcwd, us",
    "opendir+readdir, us",
    "fork+exec, us",
    "stat in 4 threads, us",
}


@pytest.fixture(scope="module", autouse=True)
def program() -> None:
    subprocess.run(["make", "--silent", "bench"], cwd=ROOT, check=True, capture_output=True)


def test_each_call_and_program_has_a_time_under_each_backend(cli: CommandLine) -> None:
    programs = {"true": ("true",), "a program that fails": ("false",)}
    backends = ["bwrap", "fastpath"]
    found = bench_tracer.tracer(backends, 1, {**os.environ, **cli.environ}, seconds=0.002, programs=programs)
    assert found["skipped"] == {}
    for measured in (found["pinned"], found["unpinned"]):
        assert {*CALLS, "true, ms"} <= measured.keys()
        assert "a program that fails, ms" not in measured
        for figures in measured.values():
            assert set(figures) == {"chroot", *backends}
            assert figures["chroot"]["ratio"] == 1
            assert all(figure["min"] <= figure["median"] <= figure["max"] for figure in figures.values())
    stat = found["pinned"]["stat deep, us"]
    assert stat["fastpath"]["median"] > stat["chroot"]["median"]
    table = tables(found, "chroot").splitlines()
    assert table[0] == "| pinned | chroot | bwrap | fastpath |"
    assert sum(line.startswith("| stat deep, us | ") for line in table) == 2


def test_a_query_is_one_stop_and_what_names_no_path_is_none(cli: CommandLine) -> None:
    stops = bench_tracer.tracer(["fastpath"], 1, {**os.environ, **cli.environ}, seconds=0.002, programs={})["stops"]
    counted = {call: row["fastpath"] for call, row in stops.items()}
    queries = ("stat deep", "stat shallow", "access", "missing", "statx deep", "readlink", "readlink exe", "getcwd")
    assert {call: round(counted[call]) for call in queries} == dict.fromkeys(queries, 1)
    assert (round(counted["getppid"]), round(counted["fstat"])) == (0, 0)
    assert round(counted["open+close"]) == 2
