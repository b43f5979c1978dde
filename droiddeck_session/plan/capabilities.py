# SPDX-License-Identifier: GPL-3.0-or-later
"""What a backend's probe showed that it can do. The plan knows no backend: this reaches it as data."""

from __future__ import annotations

from typing import Literal

from droiddeck_session.plan.model import Frozen, OsText


class Capabilities(Frozen):
    """One backend on this machine, for this user. What a probe did not show is off.

    Attributes:
        backend: the registered name.
        available: whether it can run a program at all; if not, `why_not` and `fix` say why and what would help.
        program: absolute path of the program that was probed, empty where there is none.
        version: what the program calls itself; for people, nothing is decided by it.
        confines: guest-only files are visible and host-only files are not, through libc and every raw call probed.
        leaks: names of the calls that reached the host (`statx`, `openat2`, `faccessat2`, ... or `everything`).
        options: names of the command-line options that the program knows, without dashes.
        host_environment: variables that the program itself needs on the host, as the probe found.
        kernel_identity: how much of uname(2) it can set: nothing, the release alone, or all fields.
        nodename: it can set the host name.
        change_identity: it can show other user and group ids than the caller's.
        read_only_binds: it can refuse writes through a bind.
        colon_in_binds: a bind path may hold a colon.
        makes_mount_points: it shows a bind whose guest path does not exist in the rootfs.
        rootfs: it has a root of its own (the direct backend has none).
        main_status: the exit status is the main program's; False: the status of the process that ended last.
        signal_status: death by signal n is told as 128+n (or by the same signal).
        tree_ends_with_main: what the main program leaves behind ends with it.
        stays_parent: its process stays between the supervisor and the main program.
        traces: its process answers the guest's system calls: the tree is broken without it; a wrapper is not missed.
        forwards_signals: TERM to its process reaches the main program.
        fast_path: it lets the fast path's page through.
    """

    backend: str
    available: bool
    why_not: str = ""
    fix: str = ""
    program: OsText = ""
    version: str = ""
    confines: bool = False
    leaks: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    host_environment: tuple[tuple[str, OsText], ...] = ()
    kernel_identity: Literal["none", "release", "full"] = "none"
    nodename: bool = False
    change_identity: bool = False
    read_only_binds: bool = False
    colon_in_binds: bool = False
    makes_mount_points: bool = False
    rootfs: bool = True
    main_status: bool = False
    signal_status: bool = False
    tree_ends_with_main: bool = False
    stays_parent: bool = False
    traces: bool = False
    forwards_signals: bool = False
    fast_path: bool = False
