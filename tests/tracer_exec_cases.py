# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways in which execve is tried: a table of attempts on the files of tracer_exec_files.py.

Each row is a line of `backends/fastpath/tests/exec_try.c`; what it prints under the tracer is compared with what it
prints in the kernel's truth. `@` stands for the folder's path in the guest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tracer_exec_files import DEEP

if TYPE_CHECKING:
    from pathlib import Path


class Attempt(NamedTuple):
    """One line of exec_try."""

    method: str
    options: str
    path: str
    arguments: tuple[str, ...] = ("zero", "one")

    @property
    def name(self) -> str:
        return " ".join([self.method, self.options, self.path[:300], *self.arguments])

    def line(self, guest: str) -> str:
        return "\t".join([self.name, self.method, self.options, self.path, *self.arguments]).replace("@/", f"{guest}/")


def files_of(folder: Path) -> list[str]:
    return sorted(
        {path.name for path in folder.iterdir() if not path.name.startswith("deep-")}
        - UNREADABLE
        - {"exec-try", "exec-burst"}
    )


ELVES: Final = ("show-static", "show-static-pie", "show-dynamic", "show-pie")


def each_file(folder: Path) -> list[Attempt]:
    """Every program and script once."""
    return [Attempt("execve", "-", f"@/{name}") for name in files_of(folder)]


def each_file_as_stranger(folder: Path) -> list[Attempt]:
    return [Attempt("execve", "uid=1234", f"@/{name}") for name in files_of(folder)]


def each_path(folder: Path) -> list[Attempt]:
    """Ways to name a file."""
    del folder
    rows = [Attempt("execve", options, path) for path in PATHS for options in ("-", "cwd=@/", "uid=1234")]
    return rows + [
        Attempt("execve", f"deep=@/deep-{length}", path)
        for length in DEEP
        for path in ("show", "./show", "../" + "d" * 200 + "/show", "nothing", "link")
    ]


def by_descriptor(folder: Path) -> list[Attempt]:
    """Files that only a descriptor leads to, or that are named by one."""
    del folder
    rows = [
        Attempt(method, options, f"@/{name}")
        for method in ("descriptor", "memfd", "removed")
        for name in (*ELVES, "plain", "argument", "nested-2", "empty", "elf-interpreter-missing")
        for options in ("-", "cloexec", "twice")
    ]
    rows += [
        Attempt("descriptor", f"opath,{more}", f"@/{name}") for more in ("-", "cloexec") for name in (*ELVES, "plain")
    ]
    rows += [Attempt("descriptor", "fd=99", "@/show-static"), Attempt("descriptor", "fd=-100", "@/show-static")]
    rows += [Attempt("descriptor", "-", path) for path in ("@/", "/dev/null", "@/readable", "/proc/self/exe")]
    rows += [Attempt("descriptor", "uid=1234", f"@/{name}") for name in ("show-static", "private")]
    for path in ("/proc/self/fd/21", "/dev/fd/21", "/proc/thread-self/fd/21"):
        rows += [Attempt("execve", f"open=@/{name}", path) for name in (*ELVES, "plain", "readable", "empty")]
        rows.append(Attempt("execveat", "open=@/show-static,flags=0x100", path))
    return rows


def by_directory(folder: Path) -> list[Attempt]:
    """execveat with its flags: 0x100 AT_SYMLINK_NOFOLLOW, 0x1000 AT_EMPTY_PATH, 0x10000 AT_EXECVE_CHECK."""
    del folder
    rows = []
    for name in ("show-static", "plain", "link", "link-script", "nothing", "readable", "circle"):
        more = ("", ",cloexec", ",flags=0x100", ",flags=0x1000", ",flags=0x10000")
        rows += [Attempt("execveat", f"dir=@/{options}", name) for options in more]
        flags = ("0", "0x100", "0x10000", "0x4", "0x40000")
        rows += [Attempt("execveat", f"cwd=@/,flags={flag}", name) for flag in flags]
        rows += [
            Attempt("execveat", f"fd=99,flags={flag}", f"@/{name}") for flag in ("0", "0x100", "0x1000", "0x10100")
        ]
    rows += [Attempt("execveat", f"dir=@/,flags={flag}", "") for flag in ("0", "0x1000", "0x11000")]
    rows += [
        Attempt("execveat", f"fd={fd},flags={flag}", path)
        for fd in ("-100", "99", "0", "-1")
        for flag in ("0", "0x1000")
        for path in ("", "show-static", "/nothing")
    ]
    return rows


def by_thread_and_child(folder: Path) -> list[Attempt]:
    """Who calls execve: a thread that is not the leader, a child that borrows its parent's memory."""
    del folder
    names = (*ELVES, "plain", "nested-5", "nested-6", "missing", "nothing", "empty", "readable")
    return [
        Attempt(method, options, f"@/{name}")
        for method in ("thread", "vfork", "spawn")
        for options in ("-", "twice", "uid=1234")
        for name in names
    ]


def with_vectors(folder: Path) -> list[Attempt]:
    """Argument vectors: none, bad ones, large ones; and what is wrong with the file besides."""
    del folder
    rows = []
    for target in ("show-static", "plain"):
        rows += [
            Attempt("execve", options, f"@/{name}", ("zero", "one", "two"))
            for options in ("nullargv", "badargv", "badargs", "badenv", "-")
            for name in (target, "empty", "missing", "nothing", "elf-interpreter-missing", "nested-6")
        ]
        rows += [Attempt("execve", "-", f"@/{target}", ()), Attempt("execve", "-", f"@/{target}", ("",))]
        rows += [
            Attempt(method, options, f"@/{target}", ("zero", big))
            for method, options in (("execve", "-"), ("execve", "stack=600000"), ("vfork", "-"))
            for big in BIG
        ]
        rows += [Attempt("thread", "-", f"@/{target}", ("zero", "*3000"))]
        rows += [Attempt("execve", f"writer=@/{name}", f"@/{target}") for name in ("show-static", "plain", "show-pie")]
    rows += [Attempt("execve", "writer=@/linker", f"@/{name}") for name in ("show-linked", "dynamic")]
    # A file that cannot be executed and words that are too long: which of the two is told, and where the limit lies.
    rows += [Attempt("execve", options, "@/empty", ("zero", big)) for options in ("-", "stack=100000") for big in BIG]
    rows += [Attempt("execve", "comm=before", f"@/{name}") for name in ("show-static", "plain", "nothing")]
    return rows


GROUPS: Final = {
    group.__name__: group
    for group in (
        each_file, each_file_as_stranger, each_path, by_descriptor, by_directory, by_thread_and_child, with_vectors
    )
}  # fmt: skip

# Files that a stranger may execute but not read: the tracer's loader cannot map them for him (exec.c).
UNREADABLE: Final = {"others", "script-private"}

BIG: Final = (
    "@1000",
    "@131070",
    "@131071",
    "@131072",
    "@200000",
    "*2047",
    "*3000",
    "*20000",
    "*70000",
    "!1800",
    "!2200",
    "!7000",
)

PATHS: Final = (
    "", "/", ".", "..", "@/", "@/.", "show-static", "./show-static", "plain", "./argument", "@/./show-static",
    "@/show-static/", "@/show-static/.", "@/show-static/..", "@/show-static/x", "@/closed/show",
    "@/closed/../show-static", "@/nothing", "@/nothing/", "@/nothing/show-static", "@/link/", "@/link/x",
    "@//show-static", "/./@/show-static", "@/fifo", "@/s", "/dev/null", "/dev/zero", "/proc/self/exe",
    "/proc/self/cwd/show-static", "/proc/self/root/@/show-static", "/proc/self/maps", "/etc/passwd", "/bin/true",
    "/bin/sh", "/lib64/ld-linux-x86-64.so.2", "@/" + "n" * 255, "@/" + "n" * 256, "/" * 4000 + "bin/true",
    "/" * 4087 + "bin/true", "/" * 4088 + "bin/true", "@/" + "x/" * 2100, "../../../../../../@/show-static",
)  # fmt: skip
