# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolver's test programs as Python objects: the driver, and the kernel's truth it is compared with.

Both speak lines of words (backends/fastpath/tests/driver_lines.h), so one process answers thousands of questions.
"""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

FASTPATH = Path(__file__).parent.parent / "backends" / "fastpath"
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@cache
def built(program: str, *flags: str) -> Path:
    """Compiles one of the test programs of backends/fastpath/tests, once a run.

    Args:
        program: `resolver_driver`, `mount_truth` or `fuzz_resolver`.
        flags: further flags for the compiler.

    Returns:
        The program.
    """
    resolver = sorted((FASTPATH / "resolver").glob("*.c"))
    parts = {
        "resolver_driver": [*resolver, FASTPATH / "tests" / "driver_lines.c"],
        "mount_truth": [FASTPATH / "tests" / "driver_lines.c"],
        "fuzz_resolver": [source for source in resolver if source.name not in {"sys_direct.c", "dir_cache.c"}],
    }
    # Where every user may enter it: some tests give up their rights first.
    folder = Path(mkdtemp(prefix="resolver-"))
    folder.chmod(0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / program
    command: list[str | Path] = [
        "gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", *flags,
        "-o", target, *parts[program], FASTPATH / "tests" / f"{program}.c",
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=120)
    return target


def encoded(text: bytes | str | None) -> str:
    """A string as a word of the protocol."""
    return "~" if text is None else os.fsencode(text).hex() or "-"


def decoded(word: str) -> bytes:
    """A word of the protocol as a string."""
    return b"" if word == "-" else bytes.fromhex(word)


def error_name(answer: str) -> str:
    """`-2` -> `ENOENT`; anything else as it is."""
    return errno.errorcode.get(-int(answer), answer) if answer.startswith("-") and answer != "-" else answer


class LineProgram:
    """A program that answers each line with one line."""

    def __init__(self, program: Path) -> None:
        """Starts it."""
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def __enter__(self) -> Self:
        """The program runs until the block ends."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends it; what a sanitizer has to say at the end is a failure."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        status = self.process.wait(timeout=30)
        self.process.stdout.close()
        if kind is None:
            assert status == 0, f"{self.process.args!r} ended with {status}"

    def ask(self, *words: str | int) -> str:
        """One question, one answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer.endswith("\n"), f"{self.process.args!r} died at {words!r}"
        return answer.strip()


@dataclass(frozen=True)
class Resolved:
    """What dd_resolve said."""

    error: str
    host: bytes = b""
    guest: bytes = b""
    flags: frozenset[str] = frozenset()
    name: bytes = b""
    mount: int = -1
    links: int = 0


FLAGS = {
    "c": "changed", "m": "magic", "x": "missing", "p": "mount_point", "o": "outside", "d": "caller_dependent",
    "u": "up", "!": "wrongly unchanged",
}  # fmt: skip


def flags(word: str) -> frozenset[str]:
    """The flags of a result by name."""
    return frozenset(FLAGS[letter] for letter in word[1:])


class Resolver(LineProgram):
    """The resolver, in a process of its own."""

    def __init__(self, *compiler_flags: str) -> None:
        """Starts the driver, compiled with these flags."""
        super().__init__(built("resolver_driver", *compiler_flags))

    def bind(self, host: bytes | str, guest: bytes | str) -> None:
        """Adds a bind as it is."""
        assert self.ask("bind", encoded(host), encoded(guest)) == "0"

    def resolve(
        self, path: bytes | str, mode: str = "follow", *, base: bytes | str | None = None, cached: bool = False
    ) -> Resolved:
        """Resolves a guest path."""
        words = self.ask("resolve", mode, int(cached), encoded(base), encoded(path)).split()
        if words[0] != "0":
            return Resolved(error_name(words[0]))
        host = decoded(words[1])
        return Resolved(
            error="",
            host=host,
            guest=decoded(words[2]),
            flags=flags(words[3]),
            name=host[: int(words[4])],
            mount=int(words[5]),
            links=int(words[6]),
        )

    def look(
        self, path: bytes | str, mode: str = "follow", *, base: bytes | str | None = None, cached: bool = False
    ) -> str:
        """What the host path leads to: `DEV:INODE:MODE` or an errno's name."""
        words = self.ask("look", mode, int(cached), encoded(base), encoded(path)).split()
        if len(words) == 1:
            return error_name(words[0])
        if "!" in words[0]:
            return f"wrongly unchanged: {words[1]}"
        return error_name(words[1])

    def guest_name(self, host: bytes | str) -> bytes | None:
        """A host path in guest terms."""
        answer = self.ask("guest", encoded(host))
        return None if answer == "-1" else decoded(answer)

    def read_link(self, host: bytes | str) -> bytes | str:
        """A link's text as a guest reads it, or an errno's name."""
        answer = self.ask("link", encoded(host))
        return error_name(answer) if answer.startswith("-") and answer != "-" else decoded(answer)


class MountTruth(LineProgram):
    """A process in a private mount namespace with the same binds."""

    def __init__(self, root: bytes | str, empty: bytes | str) -> None:
        """Enters `root`, shown at the folder `empty`."""
        super().__init__(built("mount_truth"))
        answer = self.ask("enter", encoded(root), encoded(empty))
        assert answer == "0", error_name(answer)

    def look(self, path: bytes | str, mode: str = "follow") -> str:
        """What the kernel finds: `DEV:INODE:MODE` or an errno's name."""
        return error_name(self.ask("look", mode, encoded(path)))
