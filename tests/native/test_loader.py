# SPDX-License-Identifier: GPL-3.0-or-later
"""The loader by itself: a program that it starts finds what it would have found from the kernel."""

from __future__ import annotations

import mmap
import os
import re
import signal
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from tracer_exec_cases import ELVES
from tracer_exec_files import COMPILER, EHDR, PHDR, PHNUM, PHOFF, SHAPES, SOURCES, TYPE, with_header

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).parent.parent.parent
LOADER: Final = ROOT / "build" / os.uname().machine / "droiddeck-loader"
ABI: Final = (ROOT / "backends" / "fastpath" / "abi.h").read_text()
LINKER: Final = "/lib64/ld-linux-x86-64.so.2"
KEY: Final = "0123456789abcdef01234567"
OWN_FAILURE: Final = 125
# The page's code as spec A.2 has it.
PAGE_CODE: Final = bytes.fromhex("48 89 F8 48 89 F7 48 89 D6 48 89 CA 4D 89 C2 4D 89 C8 4C 8B 4C 24 08 0F 05 C3")


def abi(name: str) -> int:
    """A number of abi.h, for this machine."""
    values = dict(
        re.findall(r"^#define (DD_\w+) (.+)$", ABI.split("#elif")[0] + ABI.split("#endif", 1)[1], re.MULTILINE)
    )
    text = values[name].split("/*")[0].replace("ULL", "").strip("() ")
    return sum(abi(part.strip()) if part.strip().startswith("DD_") else int(part, 0) for part in text.split("+"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of many shapes, and exec_start."""
    made = tmp_path_factory.mktemp("loader")
    for name, flags in SHAPES.items():
        subprocess.run([*COMPILER, *flags, "-o", made / name, SOURCES / "exec_show.c"], check=True)
    subprocess.run([*COMPILER, "-o", made / "exec-start", SOURCES / "exec_start.c"], check=True)
    bare = ("-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector")
    subprocess.run(["gcc", *bare, "-o", made / "registers", SOURCES / "exec_registers.c"], check=True)
    at_page = f"-Wl,-Ttext-segment={abi('DD_PAGE'):#x}"
    subprocess.run(["gcc", *bare, at_page, "-o", made / "at-page", SOURCES / "exec_registers.c"], check=True)
    at_loader = f"-Wl,-Ttext-segment={abi('DD_LOADER_BASE'):#x}"
    subprocess.run(
        ["gcc", *bare, "-mcmodel=large", at_loader, "-o", made / "at-loader", SOURCES / "exec_registers.c"], check=True
    )
    return made


def run(command: Sequence[str | Path], *, wrapper: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*wrapper, *command], capture_output=True, text=True, timeout=30, check=False, env={"A": "b"})


def loaded(folder: Path, program: Path, *arguments: str, options: Sequence[str | Path] = ()) -> list[str | Path]:
    """The command line that starts a program through the loader."""
    image = program.read_bytes() if program.exists() else b""
    headers = range(EHDR.unpack_from(image)[PHNUM]) if len(image) > EHDR.size else ()
    types = {PHDR.unpack_from(image, EHDR.unpack_from(image)[PHOFF] + n * PHDR.size)[0] for n in headers}
    linker = ["-i", LINKER] if 3 in types else []
    return [folder / "exec-start", LOADER, *linker, *options, program, *arguments]


def without_exe(text: str) -> list[str]:
    """/proc/self/exe is the tracer's to answer."""
    return [line for line in text.splitlines() if not line.startswith("exe:")]


PERSONALITIES: Final = {
    "as it is": (),
    "no randomisation": ("setarch", "-R"),
    "readable is executable": ("setarch", "-X"),
    "stack without limit": ("prlimit", "--stack=unlimited"),
    "little stack": ("prlimit", "--stack=200000"),
}


@pytest.mark.parametrize("personality", PERSONALITIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_program_cannot_tell_the_loader_from_the_kernel(folder: Path, shape: str, personality: str) -> None:
    wrapper = PERSONALITIES[personality]
    native = run([folder / shape, "one", "two"], wrapper=wrapper)
    ours = run(loaded(folder, folder / shape, "one", "two"), wrapper=wrapper)
    assert without_exe(ours.stdout) == without_exe(native.stdout)
    assert (native.returncode, ours.returncode, ours.stderr) == (0, 0, "droiddeck: yes\n")


def test_registers_flags_and_stack_are_as_from_the_kernel(folder: Path) -> None:
    native = run([folder / "registers"])
    assert native.stdout.count("\n") == 24
    assert run(loaded(folder, folder / "registers")).stdout == native.stdout


def test_the_image_lies_where_the_contract_says() -> None:
    image = LOADER.read_bytes()
    header = EHDR.unpack_from(image)
    segments = [PHDR.unpack_from(image, header[PHOFF] + n * PHDR.size) for n in range(header[PHNUM])]
    loads = [(segment[3], segment[3] + segment[6], segment[1]) for segment in segments if segment[0] == 1]
    (text, text_end, text_flags), (reserved, reserved_end, reserved_flags) = loads
    assert header[TYPE] == 2
    assert header[4] == text == abi("DD_LOADER_TEXT")
    # The page's template comes behind the text, outside of what the filter lets pass.
    assert text + abi("DD_LOADER_TEXT_SIZE") < text_end <= text + 2 * abi("DD_LOADER_TEXT_SIZE")
    assert (text_flags, reserved_flags) == (5, 6)
    assert reserved == abi("DD_LOADER_INFO")
    slots_end = abi("DD_SLOTS") + abi("DD_SLOT_COUNT") * abi("DD_SLOT_SIZE")
    assert slots_end <= abi("DD_EPOCH_PAGE") <= reserved_end - 65536
    assert reserved + 28 * 8 + abi("DD_KEY_SIZE") + 7 * 4096 <= abi("DD_SLOTS")


def test_the_loader_alone_says_whose_it_is() -> None:
    alone = run([LOADER])
    assert (alone.returncode, alone.stderr) == (OWN_FAILURE, "droiddeck-loader: is started by droiddeck-tracer only\n")


def test_a_program_that_has_gone_is_named(folder: Path) -> None:
    gone = run(loaded(folder, folder / "gone"))
    assert (gone.returncode, gone.stderr) == (
        OWN_FAILURE,
        f"droiddeck-loader: {folder / 'gone'}: cannot be opened any more\n",
    )


def test_a_program_that_has_become_something_else_is_named(folder: Path) -> None:
    (folder / "other").write_text("no program\n")
    other = run(loaded(folder, folder / "other"))
    assert other.returncode == OWN_FAILURE
    assert str(folder / "other") in other.stderr


@pytest.mark.parametrize("shape", ELVES)
def test_an_image_that_cannot_be_mapped_ends_by_the_kernels_signal(folder: Path, shape: str) -> None:
    broken = folder / "broken"
    broken.write_bytes(with_header((folder / shape).read_bytes(), PHNUM=1))
    broken.chmod(0o755)
    assert run(loaded(folder, broken)).returncode == 128 + signal.SIGSEGV
    ignored = 'trap "" SEGV; exec "$@"'
    started = run(loaded(folder, broken), wrapper=("sh", "-c", ignored, "sh"))
    assert started.returncode == 128 + signal.SIGSEGV


def maps_of(folder: Path, *options: str | Path) -> list[str]:
    cat = Path("/bin/cat").resolve()
    shown = run(loaded(folder, cat, "/proc/self/maps", options=options))
    assert shown.returncode == 0, shown.stderr
    return shown.stdout.splitlines()


def line_at(maps: list[str], address: int) -> str | None:
    return next((line for line in maps if line.startswith(f"{address:x}-")), None)


def test_the_page_is_not_there_before_the_library_takes_it(folder: Path) -> None:
    for options in ((), ("-k", KEY)):
        assert line_at(maps_of(folder, *options), abi("DD_PAGE")) is None
        assert not [line for line in maps_of(folder, *options) if "wx" in line.split()[1]]


def test_the_pages_template_holds_the_code_of_the_contract(folder: Path) -> None:
    read = f"import ctypes; print(ctypes.string_at({abi('DD_PAGE_TEMPLATE')}, {len(PAGE_CODE)}).hex())"
    python = Path("/usr/bin/python3").resolve()
    shown = run(loaded(folder, python, "-c", read, options=["-k", KEY]))
    assert bytes.fromhex(shown.stdout) == PAGE_CODE, shown.stderr


def test_the_page_gives_way_to_a_program_that_wants_its_place(folder: Path) -> None:
    native = run([folder / "at-page"])
    assert native.returncode == 0
    assert run(loaded(folder, folder / "at-page", options=["-k", KEY])).stdout == native.stdout


def test_a_program_at_the_loaders_own_place_is_not_mapped_over_it(folder: Path) -> None:
    assert run([folder / "at-loader"]).returncode == 0
    assert run(loaded(folder, folder / "at-loader")).returncode == 128 + signal.SIGSEGV


def test_the_epoch_page_is_shared(folder: Path, tmp_path: Path) -> None:
    epoch = tmp_path / "epoch"
    epoch.write_bytes(struct.pack("<Q", 41).ljust(mmap.PAGESIZE, b"\0"))
    address = abi("DD_EPOCH_PAGE")
    raise_it = f"import ctypes; epoch = ctypes.c_uint64.from_address({address}); print(epoch.value); epoch.value += 1"
    python = Path("/usr/bin/python3").resolve()
    shown = run(loaded(folder, python, "-c", raise_it, options=["-k", KEY, "-e", epoch]))
    assert shown.stdout == "41\n", shown.stderr
    assert struct.unpack_from("<Q", epoch.read_bytes()) == (42,)


def test_without_its_epoch_page_the_fast_path_is_off(folder: Path, tmp_path: Path) -> None:
    key_at = abi("DD_LOADER_INFO") + 8 + 6 * 4 + 16
    read = f"import ctypes; print(ctypes.string_at({key_at}))"
    python = Path("/usr/bin/python3").resolve()
    on = run(loaded(folder, python, "-c", read, options=["-k", KEY]))
    assert on.stdout == f"{KEY.encode()!r}\n"
    off = run(loaded(folder, python, "-c", read, options=["-k", KEY, "-e", tmp_path / "gone"]))
    assert off.stdout == "b''\n", off.stderr


def test_nothing_is_left_open_and_nothing_is_mapped_but_what_the_contract_names(folder: Path) -> None:
    own = [line for line in maps_of(folder, "-k", KEY) if LOADER.name in line or line.startswith("55000")]
    addresses = [int(line.split("-")[0], 16) for line in own]
    assert addresses[:2] == [abi("DD_LOADER_TEXT"), abi("DD_LOADER_INFO")]
    assert all("[heap]" in line for line in own[2:])


def test_the_heap_grows_beyond_the_reserved_part_without_randomisation(folder: Path) -> None:
    cat = Path("/bin/cat").resolve()
    shown = run(loaded(folder, cat, "/proc/self/maps"), wrapper=("setarch", "-R"))
    heap = next(line for line in shown.stdout.splitlines() if "[heap]" in line)
    assert int(heap.split("-")[0], 16) >= abi("DD_EPOCH_PAGE") + 65536
