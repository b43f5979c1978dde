# SPDX-License-Identifier: GPL-3.0-or-later
"""The one place that starts programs: argv lists, time limits, and errors that can be pasted into a shell."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from droiddeck_session.errors import EXIT_FILES, DroiddeckError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

DEFAULT_TIME_LIMIT: Final = 10.0
_TAIL_LINES: Final = 5


class ProcessError(DroiddeckError):
    """A program could not be started, failed, or did not end in time."""

    exit_status = EXIT_FILES


@dataclass(frozen=True, kw_only=True)
class Completed:
    """How a program ended.

    `returncode` is as subprocess has it (minus the number for a signal); None means that the time limit ended it.
    """

    argv: tuple[str, ...]
    returncode: int | None
    stdout: bytes
    stderr: bytes

    @property
    def timed_out(self) -> bool:
        """Whether the time limit ended the program."""
        return self.returncode is None


def pasteable(argv: Sequence[str], env: Mapping[str, str] | None = None, cwd: str | Path | None = None) -> str:
    """Return one shell line that starts the same program: `(cd D && env -i A=b prog arg)`."""
    words = shlex.join(argv)
    if env is not None:
        words = " ".join(["env", "-i", *(shlex.quote(f"{name}={value}") for name, value in env.items()), words])
    return f"(cd {shlex.quote(os.fspath(cwd))} && {words})" if cwd is not None else words


def ending(returncode: int | None) -> str:
    """Return an ending in words: `exit status 3`, `killed by SIGKILL`, `stopped by the time limit`."""
    if returncode is None:
        return "stopped by the time limit"
    if returncode >= 0:
        return f"exit status {returncode}"
    try:
        return f"killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"killed by signal {-returncode}"


def run(
    argv: Sequence[str],
    *,
    time_limit: float = DEFAULT_TIME_LIMIT,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stdin: bytes = b"",
    check: bool = False,
    hint: str = "",
) -> Completed:
    """Run a program to its end in a process group of its own and return what it printed.

    The group is killed when the time is up, so that nothing of a hanging probe stays behind.

    Args:
        argv: program and arguments; the program is looked up on PATH.
        time_limit: seconds.
        env: the whole environment, or None for the caller's.
        cwd: working directory, or None for the caller's.
        stdin: what the program reads.
        check: raise unless the status is 0.
        hint: what to tell the user when it fails.

    Raises:
        ProcessError: the program cannot be started; or with `check`, it failed or ran out of time.
    """
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=env, cwd=cwd, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise cannot_start(argv, error, hint=hint) from error
    try:
        stdout, stderr = process.communicate(stdin, timeout=time_limit)
        returncode: int | None = process.returncode
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        returncode = None
    completed = Completed(argv=tuple(argv), returncode=returncode, stdout=stdout, stderr=stderr)
    if check and returncode != 0:
        raise failed(completed, env=env, cwd=cwd, hint=hint)
    return completed


def failed(
    completed: Completed, *, env: Mapping[str, str] | None = None, cwd: str | Path | None = None, hint: str = ""
) -> ProcessError:
    """Return the error for a program that ended badly: the ending, its last lines, and the line to paste."""
    text = completed.stderr or completed.stdout
    tail = [line for line in text.decode(errors="replace").splitlines() if line.strip()][-_TAIL_LINES:]
    message = f"{completed.argv[0]}: {ending(completed.returncode)}"
    if tail:
        message += ": " + " / ".join(tail)
    again = f"to see it again: {pasteable(completed.argv, env, cwd)}"
    return ProcessError(code="PROGRAM_FAILED", message=message, hint=f"{hint}; {again}" if hint else again)


def cannot_start(argv: Sequence[str], error: OSError, *, hint: str = "") -> ProcessError:
    """Return the error for a program that the kernel would not start."""
    return ProcessError(
        code="PROGRAM_NOT_STARTED",
        message=f"cannot start {argv[0]!r}: {error.strerror}",
        hint=hint or f"tried: {pasteable(argv)}",
    )
