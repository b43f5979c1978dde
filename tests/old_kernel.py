# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a program as on a kernel before 6.15: a seccomp filter answers PIDFD_GET_INFO with ENOTTY, as that one does.

`python old_kernel.py PROGRAM ARGS`; what the program starts has the filter too.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from typing import Final

_IOCTL: Final = {"x86_64": 16, "aarch64": 29}
_PIDFD_GET_INFO: Final = 0xC040FF0B
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
# linux/bpf_common.h, linux/seccomp.h; struct seccomp_data has the number at 0 and the second argument at 24.
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _REQUEST = 0, 24
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def become_old() -> None:
    """Put this process and its descendants on an old kernel, for good."""
    rows = (
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_IF_EQUAL, 0, 3, _IOCTL[platform.machine()]),
        (_LOAD, 0, 0, _REQUEST),
        (_JUMP_IF_EQUAL, 0, 1, _PIDFD_GET_INFO),
        (_RETURN, 0, 0, _ERRNO | errno.ENOTTY),
        (_RETURN, 0, 0, _ALLOW),
    )
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = _Program(len(rows), ctypes.addressof(text))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    no = ctypes.c_ulong(0)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), no),
        (_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(program)),
    ):
        if prctl(*arguments, no, no) != 0:
            raise OSError(ctypes.get_errno(), "no seccomp filter here")


if __name__ == "__main__":
    become_old()
    os.execvp(sys.argv[1], sys.argv[1:])
