# SPDX-License-Identifier: GPL-3.0-or-later
"""The in-process library: when it is on, what it must never do, and what it needs of a guest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from traced import ENVIRON, PROGRAMS, ROOT, TIME_LIMIT, SmallGuest, answers

if TYPE_CHECKING:
    from pathlib import Path

KEY = "0123456789abcdef01234567"
LIBRARY = ROOT / "build" / os.uname().machine / "libblfastpath.so"


@pytest.fixture
def guest(tmp_path: Path) -> SmallGuest:
    made = SmallGuest(tmp_path)
    shutil.copy(LIBRARY, made.root / "programs")
    return made


def compiled(folder: Path, *flags: str) -> Path:
    target = folder / "library_try"
    command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", *flags]
    subprocess.run([*command, "-o", target, PROGRAMS / "library_try.c"], check=True, timeout=120)
    return target


def tried(
    guest: SmallGuest, *words: str, flags: tuple[str, ...] = (), key: str = KEY, **environ: str
) -> tuple[int, list[str], str]:
    program = guest.add(compiled(guest.top, *flags))
    preload = {"LD_PRELOAD": "/programs/libblfastpath.so", "PROOT_FP_STATS": "1"}
    done = guest.traced(program, *words, environ={"PROOT_FASTPATH": key, **preload, **environ})
    return answers(done)


def fast_calls(told: str) -> int:
    """How many calls the library answered, of what it told at the end."""
    return sum(int(number) for number in re.findall(r"^fastpath\[\d+\] .*: (\d+) fast", told, re.MULTILINE))


@pytest.mark.parametrize("life", ["0", "2000", "60000"])
def test_a_folder_that_another_process_swaps_for_a_link_is_seen_at_once(guest: SmallGuest, life: str) -> None:
    status, lines, told = tried(guest, "swap", PROOT_FP_TTL_MS=life)
    assert (status, lines) == (
        0,
        [
            *["before: in the folder, size 14"] * 3,
            "swapped: guest, size 6",
            "made in /etc: 1",
            "swapped: guest, size 6",
            "back: in the folder, size 14",
            "own rename: No such file or directory, size -1",
        ],
    )
    assert (guest.root / "etc" / "made").read_text() == "x"
    assert fast_calls(told) > 10


def test_a_program_with_a_filter_of_its_own_sees_no_call_that_it_did_not_make(guest: SmallGuest) -> None:
    status, lines, _ = tried(guest, "filter")
    assert (status, lines) == (0, ["open 1, access 0, readlink -1, stat 0", "after execve: open 1, mkdir 0"])


def test_no_descriptor_is_held_or_left(guest: SmallGuest) -> None:
    status, lines, told = tried(guest, "descriptors")
    assert (status, lines) == (0, ["descriptors: 0 more"])
    assert fast_calls(told) > 500


def test_no_call_needs_more_than_four_kib_of_stack(guest: SmallGuest) -> None:
    status, lines, told = tried(guest, "stack", PROOT_FP_TTL_MS="0")
    names = ("stat", "open", "access", "getcwd", "rename", "chmod")
    assert (status, lines) == (0, [f"{name}: less than 4 KiB" for name in names])
    assert fast_calls(told) > 8


@pytest.mark.parametrize(("word", "said"), [("vfork", "vfork: 7"), ("handler", "handled")])
def test_children_that_share_memory_and_handlers_may_call(guest: SmallGuest, word: str, said: str) -> None:
    status, lines, _ = tried(guest, word)
    assert (status, lines) == (0, [said])


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({"PROOT_FP_OFF": "1"}, "PROOT_FP_OFF is set"),
        ({"PROOT_FP_KEY": "f" * 24}, "PROOT_FP_KEY is not this session's key"),
    ],
)
def test_it_is_off_and_says_why_where_the_environment_is_not_this_sessions(
    guest: SmallGuest, environ: dict[str, str], why: str
) -> None:
    status, lines, told = tried(guest, "calls", flags=(), **environ)
    assert (status, lines) == (0, [])
    assert told.endswith(f"off: {why}\n")


def test_the_right_key_is_accepted(guest: SmallGuest) -> None:
    status, _, told = tried(guest, "calls", PROOT_FP_KEY=KEY)
    assert status == 0
    assert fast_calls(told) > 8


def test_it_is_off_in_a_program_whose_shadow_memory_lies_over_the_page(guest: SmallGuest) -> None:
    asan = ("-fsanitize=address", "-static-libasan")
    status, lines, told = tried(
        guest, "descriptors", flags=asan, ASAN_OPTIONS="detect_leaks=0:verify_asan_link_order=0"
    )
    assert (status, lines) == (0, ["descriptors: 0 more"])
    assert told.endswith("off: the page is taken\n")


def test_it_is_off_without_our_tracer(tmp_path: Path) -> None:
    program = compiled(tmp_path)
    done = subprocess.run(
        [program, "vfork"],
        capture_output=True, text=True, check=False, timeout=TIME_LIMIT,
        env={**ENVIRON, "LD_PRELOAD": str(LIBRARY), "PROOT_FP_STATS": "1", "PROOT_FP_KEY": KEY},
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr.endswith("off: not started by droiddeck-tracer\n")


def test_it_asks_for_no_version_of_any_symbol_and_for_few_symbols() -> None:
    listed = subprocess.run(
        ["objdump", "-T", LIBRARY], capture_output=True, text=True, check=True, timeout=TIME_LIMIT
    ).stdout
    wanted = {line.split()[-1] for line in listed.splitlines() if "*UND*" in line}
    assert "GLIBC" not in listed
    assert wanted == {
        "_IO_fopen", "__connect", "__errno_location", "abort", "canonicalize_file_name", "clock_gettime", "environ",
        "fdopen", "fdopendir", "free", "getauxval", "malloc", "memchr", "memcmp", "memcpy", "memmove", "strcmp",
        "strcspn", "strlen", "strncmp", "strnlen",
    }  # fmt: skip
