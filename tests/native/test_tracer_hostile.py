# SPDX-License-Identifier: GPL-3.0-or-later
"""What is hard on a tracer: kills, stops and signals at every moment, debuggers in the guest, programs of 32 bits."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
from pathlib import Path

import pytest
from traced import ENVIRON, TIME_LIMIT, SmallGuest, answers, built, wait_for
from tracer_exec_files import with_interpreter

ROUNDS = 60
MORE_ROUNDS = 3000  # ./dev test --all


STORMS = {
    "killed": "killed: all by the signal",
    "borrowers": "borrowers: each parent went on",
    "threads": "threads: each process became the program",
    "forks": "forks: each had an end",
    "alarms": "alarms: 0 failed in the handler",
    "stops": "stops: each was told",
    "filter": "filter: mkdirat -1 Numerical argument out of domain, newfstatat trapped 1, "
    "execve -1 Link has been severed, openat 1, unlinkat killed 1",
}


@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(MORE_ROUNDS, marks=pytest.mark.long)])
@pytest.mark.parametrize("part", STORMS)
def test_no_moment_is_a_bad_one(guest: SmallGuest, part: str, rounds: int) -> None:
    done = guest.traced(guest.add(built("storm")), part, str(rounds), options=["-w", "/spot"])
    assert answers(done) == (0, [STORMS[part]], "")


@pytest.mark.parametrize("part", STORMS)
def test_no_moment_is_a_bad_one_for_emulated_ids(guest: SmallGuest, part: str) -> None:
    done = guest.traced(guest.add(built("storm")), part, str(ROUNDS), options=["-w", "/spot", "-i", "5:6"])
    assert answers(done) == (0, [STORMS[part]], "")


@pytest.mark.parametrize("part", STORMS)
def test_the_kernel_alone_says_the_same_of_each_storm(tmp_path: Path, part: str) -> None:
    done = subprocess.run(
        [built("storm"), part, str(ROUNDS)], capture_output=True, timeout=TIME_LIMIT, cwd=tmp_path, check=False
    )
    assert answers(done) == (0, [STORMS[part]], "")


def members(marker: str) -> list[int]:
    """Processes whose environment has this text."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and marker.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("rounds", [8, pytest.param(300, marks=pytest.mark.long)])
def test_a_tracer_killed_during_a_burst_takes_all_along(guest: SmallGuest, rounds: int) -> None:
    program = guest.add(built("storm"))
    for n in range(rounds):
        marker = f"DD_TEST_STORM={os.getpid()}-{n}"
        script = f"echo ready; {program} killed 100000 & {program} threads 100000 & {program} borrowers 100000"
        with subprocess.Popen(
            guest.command("/bin/sh", "-c", script), stdout=subprocess.PIPE,
            env={**ENVIRON, marker.partition("=")[0]: marker.partition("=")[2]},
        ) as running:  # fmt: skip
            assert running.stdout is not None
            assert running.stdout.readline() == b"ready\n"
            wait_for(lambda marker=marker: len(members(marker)) > 4, "a burst")  # type: ignore[misc]
            running.kill()
            running.wait(TIME_LIMIT)
        wait_for(lambda marker=marker: members(marker) == [], "all dead")  # type: ignore[misc]


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]


def waits_for_delivery(pid: int, number: int) -> bool:
    lines = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    return any(int(lines[name], 16) >> (number - 1) & 1 for name in ("SigPnd", "ShdPnd"))


def test_a_stopped_main_program_gets_its_term_when_it_goes_on(guest: SmallGuest) -> None:
    with subprocess.Popen(
        guest.command("/bin/sh", "-c", "echo ready; kill -STOP $$; echo never", options=["--kill-on-exit"]),
        stdout=subprocess.PIPE, env=ENVIRON,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        main = int(Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text())
        wait_for(lambda: not waits_for_delivery(main, signal.SIGSTOP) and state(main) in "tT", "stopped")
        running.terminate()
        wait_for(lambda: waits_for_delivery(main, signal.SIGTERM), "TERM arrived")
        assert state(main) in "tT"
        os.kill(main, signal.SIGCONT)
        assert running.wait(TIME_LIMIT) == 128 + signal.SIGTERM
        assert running.stdout.read() == b""


MANY_FOLDERS = """
import os, sys
for n in range(300):
    os.makedirs(f"/spot/{n}/inner")
for n in range(300):
    assert os.stat(f"/spot/{n}/inner/.").st_mode and not os.path.exists(f"/spot/{n}/inner/missing")
    os.close(os.open(f"/spot/{n}/inner/file", os.O_CREAT))
print(os.system("true"), "/usr/bin/python" in open("/proc/self/maps").read())
print(os.popen("ulimit -n").read())
"""


@pytest.mark.parametrize("limit", ["14:14", "14:20", "256:4096"])
def test_few_descriptors_are_enough(guest: SmallGuest, limit: str) -> None:
    command = guest.command("/usr/bin/python3", "-S", "-c", MANY_FOLDERS)
    done = subprocess.run(
        ["prlimit", f"--nofile={limit}", *command], capture_output=True, timeout=TIME_LIMIT, env=ENVIRON, check=False
    )
    assert answers(done) == (0, ["0 True", limit.partition(":")[0], ""], "")


def test_a_limit_of_file_sizes_ends_no_session(guest: SmallGuest) -> None:
    command = ["prlimit", "--fsize=0", *guest.command("/bin/sh", "-c", "cat /proc/self/maps; echo goes on")]
    done = subprocess.run(command, capture_output=True, timeout=TIME_LIMIT, env=ENVIRON, check=False)
    assert answers(done)[:2] == (0, ["goes on"])


def test_a_debugger_in_the_guest_is_told_at_once(guest: SmallGuest) -> None:
    script = "strace -f true; echo $?; strace -p $$; echo $?"
    status, lines, errors = answers(guest.traced("/bin/sh", "-c", script))
    assert (status, lines) == (0, ["1", "1"])
    assert "PTRACE_TRACEME" in errors
    assert "attach: ptrace(PTRACE_" in errors
    assert errors.count("Operation not permitted") >= 2


CRASH_REPORTER = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
ATTACH, SEIZE = 16, 0x4206  # sys/ptrace.h
parent = os.getpid()
libc.prctl(0x59616d61, -1)  # PR_SET_PTRACER, PR_SET_PTRACER_ANY
child = os.fork()
if child == 0:
    for request in (ATTACH, SEIZE):
        print(libc.ptrace(request, parent, 0, 0), errno.errorcode[ctypes.get_errno()], flush=True)
    print(open(f"/proc/{parent}/status").read().startswith("Name:"), flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_crash_reporter_that_would_attach_is_refused_and_goes_on(guest: SmallGuest) -> None:
    done = guest.traced("/usr/bin/python3", "-S", "-c", CRASH_REPORTER)
    assert answers(done) == (0, ["-1 EPERM", "-1 EPERM", "True", "0"], "")


INTERPRETERS = """
import os, shutil, subprocess, sys, time
os.chdir("/spot")
def tried(what):
    try:
        done = subprocess.run(["/spot/program"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        print(what, done.returncode, done.stdout, done.stderr, flush=True)
    except OSError as error:
        print(what, type(error).__name__, error.errno, flush=True)
os.mkdir("folder-1")
shutil.copy("/lib64/ld-linux-x86-64.so.2", "folder-1/linker")
os.symlink("folder-1", "folder")
while time.time() < os.stat("folder/linker").st_ctime + 2.5:  # so old that it is remembered
    time.sleep(0.05)
tried("first"); tried("second")
writer = open("folder/linker", "r+b"); tried("writer"); writer.close(); tried("no writer")
os.rename("folder-1", "folder-2"); tried("moved away")
os.unlink("folder"); os.symlink("folder-2", "folder"); tried("found again")
os.chmod("folder/linker", 0o644); tried("not executable"); os.chmod("folder/linker", 0o755); tried("executable")
os.rename("folder/linker", "folder/kept"); tried("gone")
shutil.copy("/bin/true", "folder/linker"); os.chmod("folder/linker", 0o755); tried("another")
os.replace("folder/kept", "folder/linker"); tried("back")
os.truncate("folder/linker", 100); tried("cut")
"""


def test_an_interpreter_is_remembered_only_as_long_as_it_is_the_same(tmp_path: Path) -> None:
    outputs = []
    for kind in ("truth", "traced"):
        guest = SmallGuest(tmp_path / kind)
        program = guest.work / "program"
        program.write_bytes(with_interpreter(Path("/bin/true").read_bytes(), b"/spot/folder/linker\0"))
        program.chmod(0o755)
        run = guest.truth if kind == "truth" else guest.traced
        outputs.append(answers(run("/usr/bin/python3", "-S", "-c", INTERPRETERS)))
    assert outputs[0][0] == 0, outputs[0]
    assert outputs[1] == outputs[0]
    assert outputs[0][1][0] == "first 0 b'' b''"


def elf_of_32_bits() -> bytes:
    """A static program for i386 that exits with 0, as small as they get."""
    code = bytes.fromhex("b801000000 31db cd80")  # mov $1, %eax; xor %ebx, %ebx; int $0x80
    base, head = 0x8048000, 52 + 32
    header = struct.pack(
        "<16sHHIIIIIHHHHHH", b"\x7fELF\1\1\1", 2, 3, 1, base + head, 52, 0, 0, 52, 32, 1, 0, 0, 0
    )  # fmt: skip
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, head + len(code), head + len(code), 5, 4096)
    return header + segment + code


def test_a_program_of_32_bits_is_refused_as_where_the_kernel_has_no_support_for_it(guest: SmallGuest) -> None:
    program = guest.work / "program"
    program.write_bytes(elf_of_32_bits())
    program.chmod(0o755)
    status, lines, errors = answers(guest.traced("/bin/sh", "-c", "/spot/program; echo $?"))
    assert (status, lines) == (0, ["126"])
    assert "Exec format error" in errors
    done = guest.traced("/spot/program")
    assert answers(done) == (126, [], "droiddeck-tracer: /spot/program: Exec format error\n")


def test_a_process_of_64_bits_may_make_32_bit_mappings_and_children(guest: SmallGuest) -> None:
    """What Wine's 32-bit half needs: low memory and a personality, both untraced."""
    script = """
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
MAP_32BIT = 0x40  # asm/mman.h
at = libc.mmap(None, 4096, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_32BIT, -1, 0)
print(0 < at < 1 << 31, libc.personality(0xffffffff) >= 0)
"""
    assert answers(guest.traced("/usr/bin/python3", "-S", "-c", script)) == (0, ["True True"], "")
