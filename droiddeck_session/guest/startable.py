# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the kernel can start a program of a rootfs at all: its format, and the interpreter that it names.

Backends say of a program that cannot be started what they like, each with a status of its own; so it is said before.
"""

from __future__ import annotations

import os
import struct
from typing import Final, Literal

from droiddeck_session.rootfs import look_up, read_file

# The headers lie at the beginning, and so does the name, with every linker there is.
_LIMIT: Final = 1 << 16
_ELF: Final = b"\x7fELF"
_SCRIPT: Final = b"#!"
# elf.h: EI_CLASS and EI_DATA in e_ident, and the p_type that names the interpreter.
_EI_CLASS: Final = 4
_EI_DATA: Final = 5
_CLASS64: Final = 2
_LITTLE: Final = 1
_PT_INTERP: Final = 3


def why_not_startable(root: str, program: str) -> str | None:
    """Return what keeps the kernel from starting a program, or None; which machine it is for is not judged here.

    Args:
        root: host path of the rootfs.
        program: guest path.

    Raises:
        FilesError: the rootfs itself cannot be opened.
    """
    found = look_up(root, program)
    if found.kind in {"missing", "unreachable"}:
        return f"{program} is missing in {root!r}"
    if not found.executable:
        return f"{program} in {root!r} is no executable file"
    image = read_file(root, program, limit=_LIMIT)
    if image is not None and not image.startswith((_ELF, _SCRIPT)):
        return f"{program} in {root!r} is no program"
    named = _interpreter(image or b"")
    if named.startswith("/") and not look_up(root, named).executable:
        return f"{named}, which {program} needs to run, is missing in {root!r}"
    return None


def _interpreter(image: bytes) -> str:
    """Return what PT_INTERP names; empty for a static program and for a script."""
    if not image.startswith(_ELF) or len(image) <= _EI_DATA:
        return ""
    order: Literal["<", ">"] = "<" if image[_EI_DATA] == _LITTLE else ">"
    wide = image[_EI_CLASS] == _CLASS64
    try:
        # Elf64_Ehdr and Elf32_Ehdr: e_phoff; e_phentsize and e_phnum. Then p_type, p_offset and p_filesz of each Phdr.
        (table,) = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", image, 32 if wide else 28)
        size, count = struct.unpack_from(f"{order}HH", image, 54 if wide else 42)
        for number in range(count):
            at = table + number * size
            if struct.unpack_from(f"{order}I", image, at)[0] == _PT_INTERP:
                offset, length = (
                    struct.unpack_from(f"{order}8xQ16xQ", image, at)
                    if wide
                    else struct.unpack_from(f"{order}4xI8xI", image, at)
                )
                return os.fsdecode(image[offset : offset + length].partition(b"\0")[0])
    except struct.error:
        pass
    return ""
