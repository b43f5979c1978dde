# SPDX-License-Identifier: GPL-3.0-or-later
"""A pseudo-terminal with a program on it, driven as a person would: type, read, wait for what appears."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import termios
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class TerminalProgram:
    """A program that leads a session of its own on a pseudo-terminal."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], **options: Any) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - tests have one thread
            **options,
        )  # fmt: skip
        os.close(slave)
        self.output = ""
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.hang_up()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def type(self, text: str) -> None:
        """Type something; control characters as they are."""
        os.write(self.master, text.encode())

    def expect(self, text: str, seconds: float = 30) -> str:
        """Read until a text has appeared; return what came before it and forget both."""
        deadline = time.monotonic() + seconds
        while text not in self.output:
            if not select.select([self.master], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{text!r} did not appear in {self.output!r}")
            try:
                self.output += os.read(self.master, 4096).decode(errors="replace")
            except OSError as error:
                raise AssertionError(f"{text!r} did not appear before the end: {self.output!r}") from error
        before, _, self.output = self.output.partition(text)
        return before

    def wait(self, seconds: float = 30) -> int:
        """Read what still comes and wait for the program's end."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            if self._open and select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.output += os.read(self.master, 4096).decode(errors="replace")
                except OSError:
                    continue
        return self.process.wait(max(0, deadline - time.monotonic()))

    def foreground(self) -> int:
        """Return the terminal's foreground process group."""
        return os.tcgetpgrp(self.master)

    def hang_up(self) -> None:
        """Close the terminal."""
        if self._open:
            self._open = False
            os.close(self.master)
