# SPDX-License-Identifier: GPL-3.0-or-later
"""The proot that is installed here, and ptrace that is not permitted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from backend_trials import BACKENDS, CALLER, DENY_PTRACE, bind, make_plan, probe, probe_request, run

from droiddeck_session.backends.ptrace_check import ptrace_permitted
from droiddeck_session.plan.capabilities import Capabilities
from droiddeck_session.session.membership import children

if TYPE_CHECKING:
    from conftest import CommandLine

pytestmark = pytest.mark.real

PROBE_PROOT = """
import json, os, sys, tempfile
from droiddeck_proot.backend import ProotBackend
from droiddeck_session.backends.interface import ProbeRequest
with tempfile.TemporaryDirectory() as scratch:
    request = ProbeRequest(environ=dict(os.environ), programs={}, scratch=scratch, machine=os.uname().machine)
    print(ProotBackend().probe(request).model_dump_json())
"""


@pytest.fixture(scope="module")
def stock() -> Capabilities:
    found = probe(BACKENDS["proot"](), CALLER)
    assert found.available, found.why_not
    return found


def test_statx_is_listed_as_leaking_exactly_where_it_reaches_the_host(
    stock: Capabilities, demo_root: Path, tmp_path: Path
) -> None:
    hidden = tmp_path / "only-on-the-host"
    hidden.write_text("")
    # coreutils' stat asks by statx
    plan = make_plan(demo_root, ["/usr/bin/stat", "-c", "%n", str(hidden)], session=tmp_path)
    reached = run(BACKENDS["proot"](), stock, plan).returncode == 0
    assert reached is ("statx" in stock.leaks)
    assert stock.confines is not bool(stock.leaks)


def test_debians_proot_has_the_capabilities_that_the_documentation_names(stock: Capabilities) -> None:
    if "kill-on-exit" in stock.options:
        assert stock.main_status
        return
    assert {"statx", "openat2", "faccessat2", "fchmodat2", "open_tree", "execveat"} <= set(stock.leaks)
    assert not {"stat", "open", "openat", "newfstatat", "faccessat", "readlinkat", "statfs"} & set(stock.leaks)
    assert not stock.confines
    assert (stock.main_status, stock.signal_status, stock.tree_ends_with_main) == (False, False, False)
    assert (stock.read_only_binds, stock.colon_in_binds, stock.forwards_signals) == (False, False, False)
    assert (stock.stays_parent, stock.traces, stock.makes_mount_points) == (True, True, True)
    assert stock.change_identity


def test_an_option_that_the_program_does_not_know_is_not_used(stock: Capabilities, tmp_path: Path) -> None:
    argv = BACKENDS["proot"]().command(make_plan(Path("/g"), ["/x"], session=tmp_path), stock).argv
    assert ("--kill-on-exit" in argv) is ("kill-on-exit" in stock.options)


def test_a_bind_shows_where_the_rootfs_has_no_mount_point(stock: Capabilities, demo_root: Path, tmp_path: Path) -> None:
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / "file").write_text("shown")
    binds = [bind(tmp_path / "shown", "/nobody/made/this")]
    plan = make_plan(demo_root, ["/bin/cat", "/nobody/made/this/file"], session=tmp_path, binds=binds)
    assert run(BACKENDS["proot"](), stock, plan).stdout == b"shown"
    assert not (demo_root / "nobody").exists()


def test_temporary_files_of_the_tracer_stay_in_the_session_folder(
    stock: Capabilities, demo_root: Path, tmp_path: Path
) -> None:
    plan = make_plan(demo_root, ["/bin/true"], session=tmp_path, binds=[bind("/usr", "/nobody/made/this")])
    host = BACKENDS["proot"]().command(plan, stock)
    assert host.env["PROOT_TMP_DIR"] == f"{tmp_path}/tracer"
    assert set(host.env) - {"PROOT_NO_SECCOMP", "PROOT_LOADER"} == {"PATH", "PROOT_TMP_DIR"}


def test_a_build_that_only_works_without_its_acceleration_is_run_without(demo_root: Path, tmp_path: Path) -> None:
    """As a shipped build does: on the host's root without a word, unless PROOT_NO_SECCOMP is set."""
    real = shutil.which("proot")
    program = tmp_path / "proot"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --help -o "$PROOT_NO_SECCOMP" = 1 ] && exec {real} "$@"\n'
        'while case "$1" in -*) true;; *) false;; esac; do shift 2; done\nexec "$@"\n'
    )
    program.chmod(0o755)
    (tmp_path / "scratch").mkdir()
    found = BACKENDS["proot"]().probe(probe_request(tmp_path / "scratch", proot=str(program)))
    assert found.available
    assert "everything" not in found.leaks
    assert found.host_environment == (("PROOT_NO_SECCOMP", "1"),)
    assert not found.fast_path
    plan = make_plan(demo_root, ["/bin/cat", "/etc/debian_version"], session=tmp_path)
    assert run(BACKENDS["proot"](), found, plan).stdout == (demo_root / "etc/debian_version").read_bytes()


def capabilities_under(*prefix: str) -> Capabilities:
    done = subprocess.run(
        [*prefix, sys.executable, "-c", PROBE_PROOT],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return Capabilities.model_validate_json(done.stdout)


def test_ptrace_that_a_filter_denies_is_named() -> None:
    found = capabilities_under(sys.executable, "-c", DENY_PTRACE)
    assert not found.available
    assert found.why_not.startswith("ptrace is not permitted here")
    assert "seccomp filter" in found.why_not
    assert "seccomp profile" in found.fix


def test_being_traced_already_is_named() -> None:
    strace = shutil.which("strace")
    assert strace, "strace is needed for this test"
    found = capabilities_under(strace, "-f", "-e", "trace=none", "-o", "/dev/null")
    assert not found.available
    assert found.why_not.startswith("ptrace is not permitted here")
    assert "already traced, by process" in found.why_not
    assert "strace" in found.fix


def test_ptrace_is_permitted_where_nothing_forbids_it() -> None:
    assert ptrace_permitted() == (True, "")


def test_a_ptrace_check_that_was_not_built_says_so() -> None:
    permitted, why = ptrace_permitted("pdp11")
    assert not permitted
    assert "pdp11/confinement-probe" in why


def test_a_killed_proot_leaves_no_file_in_tmp(cli: CommandLine) -> None:
    def left() -> set[Path]:
        return set(Path("/tmp").glob("prooted-*"))

    argv = cli.argv("run", "--backend", "proot", "--", "sh", "-c", "echo up; exec sleep 600")
    with subprocess.Popen(argv, env=cli.environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        (wrapper,) = children(process.pid)
        assert any(path.name.startswith(f"prooted-{wrapper}-") for path in left())
        os.kill(wrapper, signal.SIGKILL)
        assert process.wait(30) == 125
    assert not any(path.name.startswith(f"prooted-{wrapper}-") for path in left())
