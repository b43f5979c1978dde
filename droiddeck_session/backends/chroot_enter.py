# SPDX-License-Identifier: GPL-3.0-or-later
r"""Enter a rootfs: a private mount namespace, exactly the given binds, chroot, chdir, exec.

    python3 -I -S chroot_enter.py --root R [--bind HOST GUEST]... [--ro-bind HOST GUEST]... [--hostname N]
        [--uid U --gid G] --cwd D -- PROGRAM ARG...

Standard library only; it imports nothing of the project. Without root, or with `--uid`, all of it happens in a user
namespace that maps the caller to that uid. Every source is cloned before anything is mounted, so a bind shows the
host as it was; every guest path is walked with the rootfs as the root, so no link leads out of it. Nothing is
created: a guest path that does not exist is an error. Nothing reaches the host's mount table, and all of it ends with
the last process inside.

Exit status: 125 if the program was not started, for whatever reason; else the program's own, since it replaces this
one. That program is env(1), so 126 and 127 are what it says of the one behind it. Its environment and descriptors are
those that this program was given.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

# linux/sched.h
CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
# linux/mount.h
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
OPEN_TREE_CLONE = 1
MOVE_MOUNT_F_EMPTY_PATH = 0x4
MOVE_MOUNT_T_EMPTY_PATH = 0x40
MOUNT_ATTR_RDONLY = 0x1
# linux/fcntl.h
AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
# linux/openat2.h
RESOLVE_IN_ROOT = 0x10
# asm-generic/unistd.h; calls of 5.2 and later have one number on all architectures
NR_OPEN_TREE = 428
NR_MOVE_MOUNT = 429
NR_OPENAT2 = 437
NR_MOUNT_SETATTR = 442

OWN_FAILURE = 125

LIBC = ctypes.CDLL(None, use_errno=True)


class Stop(Exception):  # noqa: N818 - it is how the program ends, with its exit status
    """The end of this program; its text is what the user is told."""


class OpenHow(ctypes.Structure):
    """`struct open_how` of linux/openat2.h."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class MountAttr(ctypes.Structure):
    """`struct mount_attr` of linux/mount.h."""

    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


class Wanted:
    """The command line, word by word."""

    def __init__(self, words: list[str]) -> None:
        self.root = ""
        self.root_read_only = False
        self.binds: list[tuple[str, str, bool]] = []
        self.hostname: str | None = None
        self.ids: dict[str, int] = {}
        self.cwd = "/"
        self.program: list[str] = []
        rest = iter(words)
        try:
            for word in rest:
                if word == "--":
                    self.program = list(rest)
                elif word in ("--root", "--ro-root"):
                    self.root, self.root_read_only = next(rest), word == "--ro-root"
                elif word in ("--bind", "--ro-bind"):
                    self.binds.append((next(rest), next(rest), word == "--ro-bind"))
                elif word == "--hostname":
                    self.hostname = next(rest)
                elif word in ("--uid", "--gid"):
                    self.ids[word] = int(next(rest))
                elif word == "--cwd":
                    self.cwd = next(rest)
                else:
                    raise Stop(f"unknown option {word!r}")
        except (StopIteration, ValueError):
            raise Stop(f"bad value for {word!r}") from None
        if not self.root or not self.program or len(self.ids) == 1:
            raise Stop("needed: --root, a program after --, and --uid and --gid both or not at all")


def check(result: int, what: str) -> int:
    """Return the result of a C call.

    Raises:
        Stop: it is an error.
    """
    if result < 0:
        raise Stop(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def system_call(number: int, *arguments: object) -> int:
    """Make a system call that libc has no function for."""
    return int(LIBC.syscall(ctypes.c_long(number), *arguments))


def clone_tree(host: str) -> int:
    """Return a descriptor of a detached copy of what is mounted at a host path."""
    flags = OPEN_TREE_CLONE | AT_RECURSIVE | os.O_CLOEXEC
    tree = system_call(NR_OPEN_TREE, AT_FDCWD, os.fsencode(host), ctypes.c_uint(flags))
    return check(tree, f"bind source {host}")


def make_read_only(tree: int, host: str) -> None:
    """Refuse writes through a detached copy and all that is mounted below it; other mount flags stay."""
    attributes = MountAttr(attr_set=MOUNT_ATTR_RDONLY)
    flags = ctypes.c_uint(AT_EMPTY_PATH | AT_RECURSIVE)
    done = system_call(NR_MOUNT_SETATTR, tree, b"", flags, ctypes.byref(attributes), ctypes.c_size_t(32))
    check(done, f"read-only bind of {host} (Linux 5.12 or newer is needed)")


def open_in(root: int, guest: str) -> int:
    """Return a descriptor of a guest path, links resolved as the guest would."""
    how = OpenHow(flags=os.O_PATH | os.O_CLOEXEC, mode=0, resolve=RESOLVE_IN_ROOT)
    found = system_call(NR_OPENAT2, root, os.fsencode(guest), ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how)))
    return check(found, f"guest path {guest}")


def attach(tree: int, target: int, guest: str) -> None:
    """Mount a detached copy over an open path."""
    flags = ctypes.c_uint(MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH)
    check(system_call(NR_MOVE_MOUNT, tree, b"", target, b"", flags), f"mount at {guest}")


def enter_namespaces(wanted: Wanted) -> None:
    """Leave the host's namespaces, and map the ids where that needs a user namespace."""
    uid, gid = os.geteuid(), os.getegid()
    own_user_namespace = uid != 0 or bool(wanted.ids)
    flags = CLONE_NEWNS | (CLONE_NEWUTS if wanted.hostname is not None else 0)
    if own_user_namespace:
        flags |= CLONE_NEWUSER
    check(LIBC.unshare(flags), "a user namespace" if own_user_namespace else "a mount namespace")
    if own_user_namespace:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{wanted.ids.get('--uid', uid)} {uid} 1"),
            ("gid_map", f"{wanted.ids.get('--gid', gid)} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123 - pathlib is half the start-up
                file.write(text)
    check(LIBC.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None), "private mounts")
    if wanted.hostname is not None:
        hostname = os.fsencode(wanted.hostname)
        check(LIBC.sethostname(hostname, ctypes.c_size_t(len(hostname))), f"host name {wanted.hostname}")


def mount_all(wanted: Wanted) -> None:
    """Clone every source, then mount each at its guest path; the rootfs is the new root afterwards."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    sources = [(wanted.root, "/", wanted.root_read_only), *wanted.binds]
    trees = [(clone_tree(host), host, guest, read_only) for host, guest, read_only in sources]
    root = -1
    for tree, host, guest, read_only in trees:
        if read_only:
            make_read_only(tree, host)
        target = open_in(root, guest) if root >= 0 else os.open(host, os.O_PATH | os.O_CLOEXEC)
        attach(tree, target, guest)
        os.close(target)
        if root < 0:
            root = tree
        else:
            os.close(tree)
    os.fchdir(root)
    os.chroot(".")
    os.close(root)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def start(program: list[str], environment: dict[bytes, bytes]) -> None:
    """Become the program.

    Raises:
        Stop: it cannot be run.
    """
    # Python ignores these two from its start; the program shall find them as a shell would have left them.
    for name in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(name, signal.SIG_DFL)
    try:
        os.execve(program[0], program, environment)  # noqa: S606 - what this program is for
    except OSError as error:
        raise Stop(f"{program[0]} of the guest cannot be started: {error.strerror}") from None


def main(words: list[str]) -> None:
    """Do what the command line asks for; returns only by an exception."""
    # Not os.environ: Python may have added a variable for its own locale (PEP 538).
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 - as above
        entries = [entry.partition(b"=") for entry in file.read().split(b"\0") if entry]
    wanted = Wanted(words)
    enter_namespaces(wanted)
    mount_all(wanted)
    try:
        os.chdir(wanted.cwd)
    except OSError as error:
        raise Stop(f"working directory {wanted.cwd}: {error.strerror}") from None
    start(wanted.program, {name: value for name, _, value in entries})


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (Stop, OSError) as stop:
        # Not print: a name that is not UTF-8 must not fail here.
        os.write(2, os.fsencode(f"chroot_enter: {stop}\n"))
        os._exit(OWN_FAILURE)
