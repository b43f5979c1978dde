# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that execve is tried with: a folder of programs and scripts, good and bad, and of everything else."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent.parent / "backends" / "fastpath" / "tests"
COMPILER: Final = ("gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1")

# Shapes of one program, and the flags that make them.
SHAPES: Final = {
    "show-static": ("-static",),
    "show-static-pie": ("-static-pie",),
    "show-dynamic": ("-no-pie",),
    "show-pie": (),
    "show-execstack": ("-static", "-Wl,-z,execstack", "-Wl,--no-warn-execstack"),
    "show-pie-execstack": ("-Wl,-z,execstack", "-Wl,--no-warn-execstack"),
    "show-aligned": ("-Wl,-z,max-page-size=0x200000,-z,common-page-size=0x200000",),
    "show-static-aligned": ("-static-pie", "-Wl,-z,max-page-size=0x200000"),
    "show-one-segment": ("-static", "-Wl,-z,noseparate-code", "-Wl,-z,norelro"),
    "show-high": ("-static", "-Wl,-Ttext-segment=0x10000000"),
}

EHDR: Final = struct.Struct("<16sHHIQQQIHHHHHH")
PHDR: Final = struct.Struct("<IIQQQQQQ")
TYPE, MACHINE, ENTRY, PHOFF, PHENTSIZE, PHNUM = 1, 2, 4, 5, 9, 10
P_TYPE, P_FLAGS, P_OFFSET, P_VADDR, P_PADDR, P_FILESZ, P_MEMSZ, P_ALIGN = range(8)
PT_NULL, PT_LOAD, PT_INTERP = 0, 1, 3


def with_header(image: bytes, **fields: int) -> bytes:
    """The image with other values in its ELF header, by name: `TYPE`, `MACHINE`, ..."""
    header = list(EHDR.unpack_from(image))
    for name, value in fields.items():
        header[globals()[name]] = value
    return EHDR.pack(*header) + image[EHDR.size :]


def with_segment(image: bytes, wanted: int, **fields: int) -> bytes:
    """The image with other values in its first program header of one type."""
    header = EHDR.unpack_from(image)
    for n in range(header[PHNUM]):
        at = header[PHOFF] + n * PHDR.size
        segment = list(PHDR.unpack_from(image, at))
        if segment[P_TYPE] != wanted:
            continue
        for name, value in fields.items():
            segment[globals()[name]] = value
        return image[:at] + PHDR.pack(*segment) + image[at + PHDR.size :]
    raise ValueError(wanted)


def with_loads(image: bytes, **fields: int) -> bytes:
    """The image with other values in all its PT_LOAD."""
    header = EHDR.unpack_from(image)
    for n in range(header[PHNUM]):
        at = header[PHOFF] + n * PHDR.size
        segment = list(PHDR.unpack_from(image, at))
        if segment[P_TYPE] == PT_LOAD:
            for name, value in fields.items():
                segment[globals()[name]] = value
        image = image[:at] + PHDR.pack(*segment) + image[at + PHDR.size :]
    return image


def with_zeroes(image: bytes) -> bytes:
    """The image with eight bytes more in its first PT_LOAD, which nobody may write to, than the file has for it."""
    segments = (PHDR.unpack_from(image, EHDR.unpack_from(image)[PHOFF] + n * PHDR.size) for n in range(4))
    first = next(segment for segment in segments if segment[P_TYPE] == PT_LOAD)
    return with_segment(image, PT_LOAD, P_MEMSZ=first[P_FILESZ] + 8)


def with_interpreter(image: bytes, name: bytes, size: int | None = None) -> bytes:
    """The image with another PT_INTERP, at its end."""
    return with_segment(image, PT_INTERP, P_OFFSET=len(image), P_FILESZ=len(name) if size is None else size) + name


def without_loads(image: bytes) -> bytes:
    """The image without any PT_LOAD."""
    while True:
        try:
            image = with_segment(image, PT_LOAD, P_TYPE=PT_NULL)
        except ValueError:
            return image


def padded(head: bytes, length: int, fill: bytes = b"x") -> bytes:
    """The text, filled up to a length."""
    return head + fill * (length - len(head))


def scripts(folder: bytes) -> dict[str, bytes]:
    """Scripts by name."""
    show = folder + b"/show-static"
    made = {
        "plain": b"#!%b\n",
        "argument": b"#!%b one\n",
        "arguments": b"#!%b one two  three \n",
        "blanks": b"#! \t %b \t one\t two \t\n",
        "blank-end": b"#!%b   \t \n",
        "no-newline": b"#!%b one",
        "no-newline-bare": b"#!%b",
        "no-newline-blank": b"#!%b ",
        "carriage": b"#!%b\r\n",
        "nul-after-name": b"#!%b\0 one\n",
        "nul-in-argument": b"#!%b one\0two\n",
        "nul-first": b"#!\0%b\n",
        "nul-after-blank": b"#! \0%b\n",
        "second-line": b"#!%b one\n#!/nothing\n",
        "quoted": b"#!%b \"one two\" 'three'\n",
        "dashes": b"#!%b -- -x\n",
        "bytes": b"#!%b \xff\xfe \xc3\xa9\n",
    }
    result = {name: text % show for name, text in made.items()}
    result |= {
        "only-mark": b"#!",
        "only-line": b"#!\n",
        "only-blanks": b"#! \t \n",
        "only-blanks-end": b"#!  ",
        "only-blanks-long": padded(b"#!", 300, b" "),
        "half-mark": b"#",
        "space-mark": b" #!" + show + b"\n",
        "missing": b"#!/nothing/at/all\n",
        "missing-here": b"#!" + folder + b"/nothing\n",
        "directory": b"#!/usr\n",
        "dot": b"#!.\n",
        "relative": b"#!show-static one\n",
        "relative-dot": b"#!./show-static one\n",
        "relative-up": b"#!../" + os.fsencode(Path(os.fsdecode(folder)).name) + b"/show-static one\n",
        "not-executable-interpreter": b"#!" + folder + b"/readable\n",
        "link-interpreter": b"#!" + folder + b"/link one\n",
        "dangling-interpreter": b"#!" + folder + b"/dangling\n",
        "circular-interpreter": b"#!" + folder + b"/circle\n",
        "under-file": b"#!" + folder + b"/readable/x\n",
        "slash-end": b"#!" + show + b"/\n",
        "itself": b"#!" + folder + b"/itself\n",
        "empty-interpreter": b"#!" + folder + b"/empty\n",
        "text-interpreter": b"#!" + folder + b"/text\n",
        "bad-elf-interpreter": b"#!" + folder + b"/elf-wrong-machine\n",
        "dynamic": b"#!" + folder + b"/show-pie one\n",
        "env-missing": b"#!/usr/bin/env nothing-of-this-name\n",
        "env-program": b"#!/usr/bin/env " + folder + b"/show-static\n",
        "shell": b'#!/bin/sh\necho "$0" "$@"; exit 5\n',
        "exit-number": b"#!/bin/sh\nexit $1\n",
        "shell-fails": b"#!/bin/sh -e\nfalse\necho no\n",
        "private-interpreter": b"#!" + folder + b"/private\n",
        "nested-1": b"#!" + folder + b"/argument 1\n",
        "nested-bare": b"#!" + folder + b"/nested-1\n",
    }
    for depth in range(2, 8):
        result[f"nested-{depth}"] = b"#!%b/nested-%d %d\n" % (folder, depth - 1, depth)
    result["nested-missing"] = b"#!" + folder + b"/missing\n"
    result["deep-missing"] = b"#!" + folder + b"/nested-missing\n"
    # Around the 256 bytes that the kernel reads: the whole name and argument, a cut argument, a cut name.
    for length in (253, 254, 255, 256, 257, 300):
        result[f"long-argument-{length}"] = padded(b"#!" + show + b" ", length) + b"\n"
        result[f"long-name-{length}"] = padded(b"#!" + folder + b"/", length) + b"\n"
        result[f"long-slashes-{length}"] = b"#!" + padded(b"", length - 2 - len(show), b"/") + show + b"\n"
        result[f"long-blank-{length}"] = padded(b"#!", length - len(show), b" ") + show + b"\n"
        result[f"long-tail-{length}"] = padded(b"#!" + show, length, b" ") + b"one\n"
        result[f"long-open-{length}"] = padded(b"#!" + show + b" ", length)
    return result


def elf_files(folder: bytes, static: bytes, pie: bytes) -> dict[str, bytes]:
    """Wrong and odd ELF files, by name."""
    name = folder + b"/"
    result = {f"elf-cut-{size}": static[:size] for size in (3, 4, 20, 63, 64, 100, 300)}
    result |= {
        "elf-wrong-machine": with_header(static, MACHINE=40),
        "elf-i386-machine": with_header(static, MACHINE=3),
        "elf-relocatable": with_header(static, TYPE=1),
        "elf-core": with_header(static, TYPE=4),
        "elf-no-headers": with_header(static, PHNUM=0),
        "elf-header-size": with_header(static, PHENTSIZE=32),
        "elf-many-headers": with_header(static, PHNUM=65535),
        "elf-1171-headers": with_header(static, PHNUM=1171),
        "elf-headers-behind": with_header(static, PHOFF=len(static) + 5),
        "elf-headers-far": with_header(static, PHOFF=2**64 - 8),
        "elf-headers-odd": with_header(static, PHOFF=len(static) + 3)
        + b"\0" * 3
        + static[64 : 64 + 56 * EHDR.unpack_from(static)[PHNUM]],
        "elf-class-none": static[:4] + b"\0" + static[5:],
        "elf-class-32": static[:4] + b"\1" + static[5:],
        "elf-byte-order": static[:5] + b"\2" + static[6:],
        "elf-magic": b"\x7fELG" + static[4:],
        "elf-no-loads": without_loads(static),
        "elf-dyn-no-loads": without_loads(pie),
        "elf-all-executable": with_loads(static, P_FLAGS=7),
        "elf-all-executable-dyn": with_loads(pie, P_FLAGS=7),
        "elf-zeroes-read-only": with_zeroes(static),
        "elf-size-order": with_segment(static, PT_LOAD, P_FILESZ=5000, P_MEMSZ=10),
        "elf-far-address": with_segment(static, PT_LOAD, P_VADDR=2**63),
        "elf-huge-memory": with_segment(static, PT_LOAD, P_MEMSZ=2**62),
        "elf-low-address": with_segment(static, PT_LOAD, P_VADDR=0),
        "elf-odd-offset": with_segment(static, PT_LOAD, P_OFFSET=1),
        "elf-bad-entry": with_header(static, ENTRY=0x10),
        "elf-bad-alignment": with_segment(pie, PT_LOAD, P_ALIGN=0x3000),
        "elf-big-alignment": with_segment(pie, PT_LOAD, P_ALIGN=0x40000000),
        "elf-interpreter-short": with_interpreter(pie, b"\0"),
        "elf-interpreter-empty": with_interpreter(pie, b"\0\0"),
        "elf-interpreter-open": with_interpreter(pie, b"/lib64/ld-linux-x86-64.so.2"),
        "elf-interpreter-behind": with_interpreter(pie, b"/lib64/ld\0", size=1000),
        "elf-interpreter-long": with_interpreter(pie, padded(b"", 4096, b"/") + b"\0"),
        "elf-interpreter-4096": with_interpreter(
            pie, padded(b"", 4096 - 1 - len(name) - 11, b"/") + name + b"show-static\0"
        ),
        "elf-interpreter-missing": with_interpreter(pie, b"/nothing\0"),
        "elf-interpreter-directory": with_interpreter(pie, b"/usr\0"),
        "elf-interpreter-text": with_interpreter(pie, name + b"text\0"),
        "elf-interpreter-empty-file": with_interpreter(pie, name + b"empty\0"),
        "elf-interpreter-script": with_interpreter(pie, name + b"plain\0"),
        "elf-interpreter-cut": with_interpreter(pie, name + b"elf-cut-63\0"),
        "elf-interpreter-machine": with_interpreter(pie, name + b"elf-wrong-machine\0"),
        "elf-interpreter-no-headers": with_interpreter(pie, name + b"elf-no-headers\0"),
        "elf-interpreter-relocatable": with_interpreter(pie, name + b"elf-relocatable\0"),
        "elf-interpreter-not-executable": with_interpreter(pie, name + b"readable\0"),
        "elf-interpreter-private": with_interpreter(pie, name + b"private\0"),
        "elf-interpreter-relative": with_interpreter(pie, b"show-static-pie\0"),
        "elf-interpreter-nul": with_interpreter(pie, b"/lib64/ld-linux-x86-64.so.2\0x\0"),
        "elf-interpreter-static": with_interpreter(pie, name + b"show-static\0"),
        "elf-interpreter-static-pie": with_interpreter(pie, name + b"show-static-pie\0"),
    }
    return result


# Lengths of a program's guest path; the kernel takes 4095 bytes at once.
DEEP: Final = (4000, 5000)


def make_deep(folder: Path, guest: str, length: int) -> None:
    """A program `show` so deep that its guest path has this length, in folders named by one letter."""
    at = os.open(folder, os.O_PATH)
    left = length - len(f"{guest}/") - len("/show")
    for name in deep_names(length, left):
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=at)
        below = os.open(name, os.O_PATH, dir_fd=at)
        os.close(at)
        at = below
    os.symlink("plain", "link", dir_fd=at)
    made = os.open("show", os.O_CREAT | os.O_WRONLY, 0o755, dir_fd=at)
    os.write(made, (folder / "show-static").read_bytes())
    os.fchmod(made, 0o755)
    os.close(made)
    os.close(at)


def deep_names(length: int, left: int) -> list[str]:
    """Folder names which, with the slashes between them, have `left` bytes: the first tells them apart."""
    names = [f"deep-{length}"]
    left -= len(names[0])
    while left > 0:
        size = min(left - 1, 200) if left - 1 - 200 != 1 else 199
        names.append("d" * size)
        left -= size + 1
    return names


def build(folder: Path, guest: str) -> None:
    """Fill a folder that the guest will see at `guest`; everybody may enter it."""
    for name, flags in SHAPES.items():
        subprocess.run([*COMPILER, *flags, "-o", folder / name, SOURCES / "exec_show.c"], check=True)
    for name, source in {"exec-try": "exec_try.c", "exec-burst": "exec_burst.c"}.items():
        subprocess.run([*COMPILER, "-static", "-pthread", "-o", folder / name, SOURCES / source], check=True)
    static, pie = (folder / "show-static").read_bytes(), (folder / "show-pie").read_bytes()
    made = scripts(os.fsencode(guest)) | elf_files(os.fsencode(guest), static, pie)
    # Segments far from each other: what lies between them is nobody's, in a program and in an interpreter.
    holes = with_loads((folder / "show-static-aligned").read_bytes(), P_ALIGN=4096)
    made |= {
        "elf-holes": holes,
        "elf-interpreter-holes": with_interpreter(pie, os.fsencode(f"{guest}/elf-holes\0")),
        "elf-big-alignment-static": with_loads((folder / "show-static-pie").read_bytes(), P_ALIGN=0x40000000),
    }
    made |= {"empty": b"", "text": b"echo text\n", "binary": bytes(range(256)), "wide": b"\xff\xfe#\0!\0"}
    for name, content in made.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o755)
    for name, mode in {"readable": 0o644, "private": 0o700, "setuid": 0o6755, "others": 0o701, "nobody": 0o000}.items():
        (folder / name).write_bytes(static)
        (folder / name).chmod(mode)
    (folder / "script-private").write_bytes(made["plain"])
    (folder / "script-private").chmod(0o711)
    (folder / "link").symlink_to("show-static")
    (folder / "link-absolute").symlink_to(f"{guest}/show-static")
    (folder / "dangling").symlink_to("nothing")
    (folder / "circle").symlink_to("circle")
    (folder / "link-script").symlink_to("argument")
    # An interpreter of the test's own, to be held open for writing.
    linker = folder / "linker"
    linker.write_bytes(Path("/lib64/ld-linux-x86-64.so.2").read_bytes())
    linker.chmod(0o755)
    (folder / "show-linked").write_bytes(with_interpreter(pie, os.fsencode(f"{guest}/linker") + b"\0"))
    (folder / "show-linked").chmod(0o755)
    closed = folder / "closed"
    closed.mkdir()
    (closed / "show").write_bytes(static)
    (closed / "show").chmod(0o755)
    closed.chmod(0o700)
    (folder / ("n" * 255)).write_bytes(static)
    (folder / ("n" * 255)).chmod(0o755)
    (folder / "a name, with\\odd \xe9 bytes").write_bytes(static)
    (folder / "a name, with\\odd \xe9 bytes").chmod(0o755)
    for length in DEEP:
        make_deep(folder, guest, length)
    os.mkfifo(folder / "fifo", 0o777)
    with socket.socket(socket.AF_UNIX) as made_socket:
        made_socket.bind(str(folder / "s"))
    (folder / "s").chmod(0o777)
    folder.chmod(0o755)
