# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the kernel take a seccomp filter? `python -I -S seccomp_trial.py` prints what it said and ends with 0 or 1.

A program of its own, because a filter cannot be taken off again. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import sys

# linux/prctl.h, linux/seccomp.h, linux/filter.h
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
SECCOMP_RET_ALLOW = 0x7FFF0000
BPF_RET_K = 0x06

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


def refusal() -> str:
    """Install a filter that allows everything; return what went wrong, empty if nothing did."""
    program = _Program(1, ctypes.pointer(_Instruction(BPF_RET_K, 0, 0, SECCOMP_RET_ALLOW)))
    if _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, None, 0, 0) == -1:
        return f"PR_SET_NO_NEW_PRIVS: {os.strerror(ctypes.get_errno())}"
    if _libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0) == -1:
        return f"SECCOMP_MODE_FILTER: {os.strerror(ctypes.get_errno())}"
    return ""


if __name__ == "__main__":
    said = refusal()
    sys.stdout.write(said)
    sys.exit(1 if said else 0)
