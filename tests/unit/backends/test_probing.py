# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes of programs that are missing, hang, crash, print garbage or lie: each is an answer, and all of it ends."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
from backend_trials import BACKENDS, probe_request

from droiddeck_proot import backend as proot
from droiddeck_session.backends import probing
from droiddeck_session.backends.confinement import MARKER, read_answer, read_object
from droiddeck_session.backends.marked import all_ended, end_marked
from droiddeck_session.backends.probing import Limits

if TYPE_CHECKING:
    from droiddeck_session.plan.capabilities import Capabilities

HELP = """if [ "$1" = --help ]; then cat <<'END'
proot 9.9: a mock
  -r *path*, --rootfs=*path*
	Use it.
  -b *path*, --bind=*path*
  -w *path*, --pwd=*path*
  -i *string*, --change-id=*string*
  -0, --root-id
  -k *string*, --kernel-release=*string*
{more}
END
exit 0; fi
"""
# Skips the options and leaves the guest's command line.
REST = 'while case "$1" in --*) true;; -0) true;; -*) shift;; *) false;; esac; do shift; done\n'
FAST = Limits(step=3.0, patience=0.3, total=6.0)


class Probe(Protocol):
    """Write a mock and probe it."""

    def __call__(self, body: str, more: str = "", *, mode: int = 0o755) -> Capabilities: ...


@pytest.fixture
def mock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Probe:
    """Probe a shell script as the installed proot."""
    real = probing.examine

    def examine(*arguments: object, **options: object) -> Capabilities:
        return real(*arguments, **{**options, "limits": FAST})  # type: ignore[arg-type]

    monkeypatch.setattr(proot, "examine", examine)
    program = tmp_path / "proot"

    def probe(body: str, more: str = "", *, mode: int = 0o755) -> Capabilities:
        program.write_text("#!/bin/sh\n" + HELP.replace("{more}", more) + body)
        program.chmod(mode)
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        return BACKENDS["proot"]().probe(probe_request(scratch, proot=str(program)))

    return probe


def refused(found: Capabilities, *words: str) -> None:
    assert not found.available
    assert not found.confines
    assert found.fix
    for word in words:
        assert word in found.why_not


def test_a_proot_that_runs_the_guest_on_the_hosts_root_leaks_everything(mock: Probe) -> None:
    found = mock(REST + 'exec "$@"')
    assert found.available
    assert not found.confines
    assert found.leaks == ("everything",)


def test_a_hanging_proot_is_stopped_by_the_time_limit(mock: Probe) -> None:
    started = time.monotonic()
    refused(mock("sleep 1000"), "time limit")
    assert time.monotonic() - started < 30


def test_a_proot_that_leaves_processes_in_other_sessions_leaves_none(mock: Probe, tmp_path: Path) -> None:
    started = tmp_path / "started"
    refused(mock(f"setsid sleep 1000 & echo $! >>{started}; sleep 1000"), "time limit")
    pids = [int(line) for line in started.read_text().split()]
    assert pids
    for pid in pids:
        assert b"sleep" not in cmdline(pid)


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(
    "body",
    [
        "echo garbage; printf '\\377\\0{'; exit 0",
        "exit 0",
        "echo '{\"calls\": 7}'",
        "echo '[]'; echo '{}'",
        'echo \'{"calls": {}, "content": "zz"}\'',
        "i=0; while [ $i -lt 20000 ]; do printf '['; i=$((i+1)); done",
    ],
)
def test_garbage_is_no_answer(mock: Probe, body: str) -> None:
    refused(mock(body), "proot")


def test_a_lie_is_no_answer(mock: Probe) -> None:
    nothing = '"content": "", "arguments": [], "environment": [], "cwd": ["2f"], "uname": [], "ids": []'
    lie = '{"calls": {"statx": "ok"}, ' + nothing + "}"
    refused(mock(f"echo '{lie}'"), "arguments or environment")


def test_a_crash_is_told_with_its_signal(mock: Probe) -> None:
    refused(mock("kill -SEGV $$"), "SIGSEGV")


def test_the_last_lines_of_a_refusal_are_told(mock: Probe) -> None:
    refused(mock("echo \"proot error: unknown option '-w'.\" >&2; exit 1"), "exit status 1", "unknown option")


def test_a_program_without_execute_permission_is_named(mock: Probe) -> None:
    refused(mock("", mode=0o644), "may not be executed", "backend.proot")


def test_a_program_that_is_no_proot_is_named(tmp_path: Path) -> None:
    refused(BACKENDS["proot"]().probe(probe_request(tmp_path, proot="/bin/true")), "/bin/true", "-r, -b, -w")


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    refused(BACKENDS["proot"]().probe(probe_request(tmp_path, proot=str(tmp_path / "none"))), "is no file")
    refused(BACKENDS["bwrap"]().probe(probe_request(tmp_path, bwrap=str(tmp_path / "none"))), "backend.bwrap")


def test_a_text_file_as_program_is_an_answer(tmp_path: Path) -> None:
    text = tmp_path / "proot"
    text.write_text("no program\n")
    text.chmod(0o755)
    refused(BACKENDS["proot"]().probe(probe_request(tmp_path, proot=str(text))), "proot")


def test_kill_on_exit_is_used_where_it_is_known(mock: Probe, tmp_path: Path) -> None:
    used = tmp_path / "used"
    assert "kill-on-exit" in mock(f'echo "$1" >>{used}; exit 1', "  --kill-on-exit\n\tKill all of them.").options
    assert set(used.read_text().split()) == {"--kill-on-exit"}


def test_kill_on_exit_is_not_used_where_it_is_unknown(mock: Probe, tmp_path: Path) -> None:
    used = tmp_path / "used"
    assert "kill-on-exit" not in mock(f"printf '%s\\n' \"$@\" >>{used}; exit 1").options
    assert b"-r" in used.read_bytes().split()
    assert b"--kill-on-exit" not in used.read_bytes().split()


def test_a_machine_whose_native_probe_was_not_built_is_told_to_make_it(tmp_path: Path) -> None:
    request = probe_request(tmp_path)
    other = type(request)(environ=request.environ, programs={}, scratch=request.scratch, machine="pdp11")
    found = BACKENDS["bwrap"]().probe(other)
    refused(found, "pdp11/confinement-probe is not built")
    assert "make" in found.fix


def test_a_scratch_folder_that_cannot_be_written_is_an_answer() -> None:
    refused(BACKENDS["direct"]().probe(probe_request(Path("/proc"))), "/proc")


@pytest.mark.parametrize("output", [b"", b"\xff\x00", b"{", b"[1]\n7\n", b'"x"'])
def test_an_output_without_an_object_has_none(output: bytes) -> None:
    assert read_object(output) == {}
    assert read_answer(output) is None


def test_the_last_object_of_an_output_counts() -> None:
    assert read_object(b'{"a": 1}\n{"a": 2}\nnoise\n') == {"a": 2}


def test_marked_processes_are_found_in_any_session_and_ended() -> None:
    token = os.urandom(16).hex()
    reader, writer = os.pipe()
    child = os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", "trap '' TERM; echo up; exec sleep 1000"],
        {MARKER: token, "PATH": "/usr/bin:/bin"},
        file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)],
        setsid=True,
    )
    os.close(writer)
    assert os.read(reader, 3) == b"up\n"
    assert not all_ended(token, within=0.1)
    end_marked(token)
    assert os.waitpid(child, 0)[1] == 9
    assert all_ended(token, within=0.0)
    os.close(reader)
