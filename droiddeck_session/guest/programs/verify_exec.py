# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that `verify` starts: what runs, under which name, and with which words; and all that cannot be run."""

from __future__ import annotations

import ctypes
import os
import threading

from verify_calls import AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW, call, error_name, shown

TYPE_CHECKING = False  # the name that checkers know; importing typing would cost a start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A shell that says what it is: its name, words, comm, executable, whole command line and folder. The tree has the text.
WORDS = ("zero", "-c", ". /programs/report", "name", "a word")
ENVIRONMENT = {"PATH": "/usr/bin", "LC_ALL": "C"}
# Of the auxiliary vector what does not tell addresses (getauxval(3)); ld.so prints it when asked.
_TOLD = (
    "AT_EXECFN", "AT_SECURE", "AT_UID", "AT_EUID", "AT_GID", "AT_EGID", "AT_PAGESZ", "AT_PHENT", "AT_PHNUM", "AT_FLAGS",
    "AT_CLKTCK", "AT_PLATFORM",
)  # fmt: skip
# linux/binfmts.h: MAX_ARG_STRLEN
_LONGEST_WORD = 131072

PROGRAMS = (
    "/programs/sh", "sh-is-not-here", "../programs/sh", "/links/program", "/links/program-absolute", "/bound/sh",
    "/links/into-bound-sh", "/programs/../bound/sh", "/proc/self/fd/104", "/proc/self/root/programs/sh",
    "/bound/nested/../sh", "/programs/\u00e9 sh", "/bin/sh", "/proc/self/cwd/../programs/sh", "/bound/sub/bound-sh",
)  # fmt: skip
SCRIPTS = (
    "/programs/script", "/programs/script-with-word", "/programs/script-by-link", "/programs/script-of-bound",
    "/programs/script-of-script", "/programs/script-4", "/programs/script-5", "/programs/script-6",
    "/programs/script-absent", "/programs/script-of-folder", "/programs/script-of-itself", "/programs/script-empty",
    "/programs/script-spaces", "/programs/script-line-feed", "/programs/script-relative", "/programs/script-no-newline",
    "/programs/script-long", "/programs/script-too-long", "/programs/script-not-executable", "/bound/script",
    "/links/script", "../programs/script", "/proc/self/cwd/../programs/script", "/programs/script-of-text",
)  # fmt: skip
REFUSED = (
    "", "/", "/ordinary", "/absent", "/ordinary/absent/x", "/ordinary/file", "/ordinary/file/", "/programs/sh/",
    "/programs/sh/x", "/links/loop", "/links/dangling", "/programs/text", "/programs/empty",
    "/programs/garbage", "/programs/elf-cut", "/programs/elf-header", "/programs/elf-other-machine", "/dev/null",
    "/ordinary/fifo", "/bound", "/programs/" + "x" * 256, "/ordinary/closed-folder/inside", "/programs/write-only",
)  # fmt: skip


def in_child(steps: Callable[[], object]) -> str:
    """Return what a forked child says: the result of `steps`, or what they wrote to standard output."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(writer, 1)
            os.dup2(1, 2)
            try:
                told = str(steps())
            except OSError as error:
                told = error_name(error)
            os.write(1, told.encode())
        finally:
            os._exit(0)
    os.close(writer)
    said = b""
    while part := os.read(reader, 65536):
        said += part
    os.close(reader)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return shown(said) + ("" if status == 0 else f" status {status}")


def _run(program: str, words: tuple[str, ...], environment: dict[str, str] | None = None) -> Callable[[], str]:
    return lambda: in_child(lambda: os.execve(program, words, environment or ENVIRONMENT))


def _auxiliary(program: str) -> Callable[[], str]:
    def ask() -> str:
        said = _run(program, ("zero", "-c", ":"), {**ENVIRONMENT, "LD_SHOW_AUXV": "1"})()
        lines = said.strip("'\"").split("\\n")
        return "; ".join(" ".join(line.split()) for line in lines if line.startswith(_TOLD))

    return ask


def _execveat(at_path: str, path: bytes, flags: int, *, open_flags: int = os.O_PATH) -> Callable[[], str]:
    """Start a program through a descriptor; the descriptor does not close on exec, or a script could not be read."""

    def steps() -> int:
        at = AT_FDCWD if not at_path else os.open(at_path, open_flags)
        if at >= 0:
            at = os.dup2(at, 110)
        return call("execveat", at, path, _vector(WORDS), _vector(("PATH=/usr/bin", "LC_ALL=C")), flags)

    return lambda: in_child(steps)


def _vector(words: tuple[str, ...]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(words) + 1))(*(os.fsencode(word) for word in words), None)


def _memory() -> str:
    """Start a program that no folder holds."""

    def steps() -> int:
        made = os.memfd_create("verify", os.MFD_CLOEXEC)
        with open("/programs/sh", "rb") as source:
            os.sendfile(made, source.fileno(), 0, os.fstat(source.fileno()).st_size)
        return call("execveat", made, b"", _vector(WORDS), _vector(("PATH=/usr/bin",)), AT_EMPTY_PATH)

    return in_child(steps)


def _of_thread() -> str:
    """Start a program in a thread that is not the first; it has the process to itself afterwards."""

    def steps() -> None:
        worker = threading.Thread(target=lambda: os.execve("/programs/sh", WORDS, ENVIRONMENT))
        worker.start()
        worker.join()

    return in_child(steps)


def _spawned(program: str, words: tuple[str, ...]) -> Callable[[], str]:
    """Start a program as posix_spawn(3) does, in a child that shares the memory until then."""

    def steps() -> int:
        child = os.posix_spawn(program, words, ENVIRONMENT)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    return lambda: in_child(steps)


def _busy() -> str:
    """Start a file that is open for writing."""
    opened = os.open("/programs/sh", os.O_WRONLY)
    try:
        return _run("/programs/sh", WORDS)()
    finally:
        os.close(opened)


def _executions() -> Iterator[tuple[str, Callable[[], str]]]:
    for program in PROGRAMS:
        yield program, _run(program, WORDS)
    for script in (*SCRIPTS, *REFUSED):
        yield (script if len(script) < 100 else "name of 256 bytes") or "empty", _run(script, ("zero", "a word", ""))  # noqa: PLR2004 - what fits in a line
    for program in ("/programs/sh", "/links/program", "../programs/sh"):
        yield f"auxiliary vector of {program}", _auxiliary(program)
    yield "without words", _run("/programs/sh", ("",))
    yield (
        "word of the longest length",
        _run("/programs/sh", ("zero", "-c", "echo ${#1}", "n", "x" * (_LONGEST_WORD - 1))),
    )
    yield "word that is too long", _run("/programs/sh", ("zero", "-c", ":", "x" * _LONGEST_WORD))
    yield "script with many words", _run("/programs/script-count", ("zero", *("w",) * 5000))
    yield "at a folder", _execveat("/programs", b"sh", 0)
    yield "at a folder, script", _execveat("/programs", b"script", 0)
    yield "at a folder, link not followed", _execveat("/links", b"program", AT_SYMLINK_NOFOLLOW)
    yield "at a file, nothing", _execveat("/programs/sh", b"", AT_EMPTY_PATH)
    yield "at a readable file, nothing", _execveat("/bound/sh", b"", AT_EMPTY_PATH, open_flags=os.O_RDONLY)
    yield "at a script, nothing", _execveat("/programs/script", b"", AT_EMPTY_PATH, open_flags=os.O_RDONLY)
    yield "at a folder, nothing", _execveat("/programs", b"", AT_EMPTY_PATH)
    yield "at nothing, nothing", _execveat("", b"", AT_EMPTY_PATH)
    yield "at a file", _execveat("/ordinary/file", b"sh", 0)
    yield "at, bad flag", _execveat("/programs", b"sh", 0x8000000)
    yield "at, absolute", _execveat("/ordinary", b"/bound/sh", 0)
    yield "memory", _memory
    yield "thread", _of_thread
    yield "spawned", _spawned("/programs/sh", WORDS)
    yield "spawned script", _spawned("/programs/script", ("zero", "a word"))
    yield "spawned absent", _spawned("/absent", ("zero",))
    yield "busy", _busy


EXECUTIONS = tuple(_executions())
