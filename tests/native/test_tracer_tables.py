# SPDX-License-Identifier: GPL-3.0-or-later
"""The tracer's tables of calls: every number has one owner, the filter fits, what is refused is refused."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from traced import PROGRAMS, SmallGuest, answers, built

if TYPE_CHECKING:
    from pathlib import Path

TRACER = PROGRAMS.parent / "tracer"
TABLES = [str(TRACER / name) for name in ("call_owner.c", "path_calls.c", "filter.c")]
KERNEL_LIMIT = 4096  # BPF_MAXINSNS
UNKNOWN = 511
REFUSED = 0  # OWNER_REFUSED
# Numbers of the architecture that are no system calls: bounds of ranges.
NO_CALLS = {"syscalls"}


@pytest.fixture(scope="module")
def printed() -> list[list[str]]:
    program = built("owners", *TABLES, f"-I{TRACER}")
    lines = subprocess.run([program], capture_output=True, text=True, check=True, timeout=30).stdout.splitlines()
    return [line.split() for line in lines]


def numbers() -> dict[str, int]:
    """Return the system calls that this machine's kernel headers know."""
    macros = subprocess.run(
        ["gcc", "-E", "-dM", "-include", "asm/unistd.h", "-"],
        input="", capture_output=True, text=True, check=True, timeout=30,
    ).stdout  # fmt: skip
    found = re.findall(r"^#define __NR_(\w+) (\d+)$", macros, re.MULTILINE)
    return {name: int(number) for name, number in found if name not in NO_CALLS}


def test_every_number_of_the_architecture_has_exactly_one_owner(printed: list[list[str]]) -> None:
    rows = {int(line[0]): int(line[1]) for line in printed if line[0] != "filter"}
    known = numbers()
    assert len(known) > 300
    assert {name: rows[number] for name, number in known.items() if rows[number] != 1} == {}


def test_a_number_that_no_table_knows_is_refused(printed: list[list[str]]) -> None:
    owners = {int(line[0]): int(line[2]) for line in printed if line[0] != "filter"}
    assert owners[UNKNOWN] == REFUSED


def test_the_filter_fits_whatever_is_asked_of_it(printed: list[list[str]]) -> None:
    lengths = [(line[1], int(line[2])) for line in printed if line[0] == "filter"]
    assert [fits for fits, _ in lengths] == ["1", "1"]
    assert 100 < lengths[0][1] < lengths[1][1] < KERNEL_LIMIT


def test_what_goes_round_translation_is_refused_and_what_is_harmless_passes(tmp_path: Path) -> None:
    guest = SmallGuest(tmp_path)
    status, lines, errors = answers(guest.traced(guest.add(built("refused"))))
    assert (status, errors) == (0, "")
    assert dict(line.split(": ") for line in lines) == {
        "ptrace traceme": "EPERM", "ptrace attach": "EPERM", "ptrace seize": "EPERM",
        "openat2": "ENOSYS", "open_tree": "ENOSYS", "io_uring_setup": "ENOSYS", "open_by_handle_at": "ENOSYS",
        "mount": "EPERM", "unknown number": "ENOSYS", "unknown number above": "ENOSYS",
        "x32 getpid": "ENOSYS", "x32 open": "ENOSYS",
        "unshare user": "EPERM", "unshare mounts": "EPERM", "unshare fs": "ok", "clone user": "EPERM",
        "clone mounts": "EPERM", "clone untraced": "EPERM", "setns": "EPERM",
        "host name": "EPERM", "domain name": "EPERM", "seccomp listener": "EINVAL",
        "not dumpable": "ok", "dumpable all the same": "1", "dumpable": "ok", "own name": "ok",
        "int 0x80 open": "ENOSYS", "int 0x80 getpid": "ENOSYS", "int 0x80 modify_ldt": "ok",
        "int 0x80 set_thread_area": "passed",
    }  # fmt: skip


# The filter looks at 32 bits at a time.
LOW_HALF_IS_ZERO = """
import ctypes, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(1 << 33, 4096, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x100000, -1, 0)  # MAP_FIXED_NOREPLACE
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); receiver.bind("/spot/receiver")
sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); sender.bind("/spot/sender")
address = b"\\1\\0/spot/receiver\\0"
ctypes.memmove(at, address, len(address))
sent = libc.sendto(sender.fileno(), b"text", 4, 0, ctypes.c_void_p(at), len(address))
length, taken = ctypes.c_int(110), ctypes.create_string_buffer(9)
words = taken, 9, socket.MSG_DONTWAIT, ctypes.c_void_p(at), ctypes.byref(length)
got = libc.recvfrom(receiver.fileno(), *words)
print(at == 1 << 33, sent, got, ctypes.string_at(at + 2, length.value - 2))
"""


def test_an_address_whose_lower_half_is_zero_is_one(tmp_path: Path) -> None:
    done = SmallGuest(tmp_path).traced("/usr/bin/python3", "-S", "-c", LOW_HALF_IS_ZERO)
    assert answers(done) == (0, [r"True 4 4 b'/spot/sender\x00'"], "")
