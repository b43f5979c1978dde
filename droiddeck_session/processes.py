# SPDX-License-Identifier: GPL-3.0-or-later
"""The one place that starts programs: argv lists, time limits, and errors that can be pasted into a shell."""

from __future__ import annotations

import collections
import contextlib
import errno
import os
import shlex
import signal
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from droiddeck_session.errors import EXIT_FILES, DroiddeckError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import FrameType

DEFAULT_TIME_LIMIT: Final = 10.0
_TAIL_LINES: Final = 5
_LONGEST_SHOWN: Final = 4000
_TOO_LONG: Final = "give fewer or shorter binds, variables and arguments; "
_STDERR: Final = 2
_LAST_WORDS: Final = 1.0
# What asks us to end; main() answers each by an exception.
_INTERRUPTIONS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


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


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let signals whose handlers raise wait until this block is done: a start or a cleanup in it is a whole one.

    Of each signal one is kept. Blocking them instead would block them in a program that is started here.
    """
    arrived: list[int] = []
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
    if threading.current_thread() is threading.main_thread():
        found = {signum: signal.getsignal(signum) for signum in _INTERRUPTIONS}
        handlers = {signum: handler for signum, handler in found.items() if callable(handler)}
    for signum in handlers:
        signal.signal(signum, lambda number, _frame: arrived.append(number))
    try:
        yield
    finally:
        for signum, handler in handlers.items():
            signal.signal(signum, handler)
        for signum in dict.fromkeys(arrived):
            signal.raise_signal(signum)


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

    The group is killed when the time is up or the waiting is cut short: nothing of a hanging probe stays behind.

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
    with _started(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=cwd, hint=hint
    ) as process:
        try:
            stdout, stderr = process.communicate(stdin, timeout=time_limit)
            returncode: int | None = process.returncode
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = _printed_so_far(process)
            returncode = None
    completed = Completed(argv=tuple(argv), returncode=returncode, stdout=stdout, stderr=stderr)
    if check and returncode != 0:
        raise failed(completed, env=env, cwd=cwd, hint=hint)
    return completed


def _printed_so_far(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Return what a killed program printed, without waiting for a pipe that a process outside its group still holds."""
    try:
        return process.communicate(timeout=_LAST_WORDS)
    except subprocess.TimeoutExpired as held:
        return held.stdout or b"", held.stderr or b""


@contextlib.contextmanager
def _started(argv: Sequence[str], *, hint: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program as the leader of a group; on the way out, however that comes, the group of one that runs ends.

    Raises:
        ProcessError: the program cannot be started.
    """
    process: subprocess.Popen[bytes] | None = None
    try:
        try:
            with uninterrupted():
                process = subprocess.Popen(argv, start_new_session=True, **options)
        except OSError as error:
            raise cannot_start(argv, error, hint=hint) from error
        yield process
    finally:
        if process is not None:
            with uninterrupted():
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:  # not reaped yet: the number is still this group's
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
    process.wait()


@dataclass(frozen=True, kw_only=True)
class Program:
    """A long-lived program that was started: the process, and a pidfd by which it is waited for and signalled."""

    process: subprocess.Popen[bytes]
    pidfd: int


def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | Path,
    terminal: int | None = None,
    keep: Collection[int] = (),
    stdio: tuple[int | None, int | None, int | None] = (None, None, None),
) -> Program:
    """Start a long-lived program in a process group of its own and leave it to the caller.

    Descriptors 0 to 2 are the caller's as they are (closed ones stay closed); all others are closed. Signals that the
    caller handles are at their default in the program; what the caller ignores or blocks stays so, as in execve(2).

    Args:
        argv: program and arguments.
        env: the whole environment; the program is looked up on its PATH.
        cwd: working directory.
        terminal: the controlling terminal, whose foreground group the program becomes before it runs. The caller must
            then have one thread only.
        keep: further descriptors that stay open in the program.
        stdio: other descriptors 0 to 2 than the caller's.

    Raises:
        ProcessError: the program cannot be started.
    """

    def enter_foreground() -> None:
        # SIGTTOU stops a background group that does this, unless blocked. A lost terminal is no reason not to run.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        with contextlib.suppress(OSError):
            os.tcsetpgrp(terminal or 0, os.getpgrp())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTTOU})

    try:
        process = subprocess.Popen(
            argv, env=env, cwd=cwd, process_group=0, close_fds=True, pass_fds=keep,
            stdin=stdio[0], stdout=stdio[1], stderr=stdio[2],
            # The program must not run before its group has the terminal: a shell would find itself in the background.
            preexec_fn=enter_foreground if terminal is not None else None,  # noqa: PLW1509 - one thread, as documented
        )  # fmt: skip
        try:
            return Program(process=process, pidfd=os.pidfd_open(process.pid))
        except OSError:
            _end(process)
            raise
    except OSError as error:
        raise cannot_start(argv, error) from error


def hold_closed_descriptors() -> None:
    """Put a placeholder on each of the descriptors 0 to 2 that is closed, so that no file of ours takes its number.

    The placeholders close on exec: a program that is started later finds the descriptor closed, as its caller left it.
    """
    while (descriptor := os.open("/dev/null", os.O_RDWR)) <= _STDERR:
        pass
    os.close(descriptor)


def failed(
    completed: Completed, *, env: Mapping[str, str] | None = None, cwd: str | Path | None = None, hint: str = ""
) -> ProcessError:
    """Return the error for a program that ended badly: the ending, its last lines, and the line to paste."""
    text = completed.stderr or completed.stdout
    tail = [line for line in text.decode(errors="replace").splitlines() if line.strip()][-_TAIL_LINES:]
    message = f"{completed.argv[0]}: {ending(completed.returncode)}"
    if tail:
        message += ": " + " / ".join(tail)
    again = f"to see it again: {_shortened(pasteable(completed.argv, env, cwd))}"
    return ProcessError(code="PROGRAM_FAILED", message=message, hint=f"{hint}; {again}" if hint else again)


def cannot_start(argv: Sequence[str], error: OSError, *, hint: str = "") -> ProcessError:
    """Return the error for a program that the kernel would not start."""
    return ProcessError(
        code="PROGRAM_NOT_STARTED",
        message=f"cannot start {argv[0]!r}: {error.strerror}",
        hint=hint or (_TOO_LONG if error.errno == errno.E2BIG else "") + f"tried: {_shortened(pasteable(argv))}",
    )


def _shortened(line: str) -> str:
    """Return a line to paste, or its beginning where nobody would read or paste it whole."""
    cut = f"{line[:_LONGEST_SHOWN]}... (cut off: it has {len(line)} characters)"
    return line if len(line) <= _LONGEST_SHOWN else cut


def stream(
    argv: Sequence[str],
    *,
    on_line: Callable[[str], None],
    env: Mapping[str, str] | None = None,
    hint: str = "",
) -> Completed:
    """Run a long program in a process group of its own and hand on each line it prints, standard error included.

    It has no time limit: that of a download is the network's. When the waiting is cut short, by an interrupt too, the
    group is killed before this returns.

    Args:
        argv: program and arguments; the program is looked up on PATH.
        on_line: gets each line without its end; bytes that are not UTF-8 arrive as surrogates.
        env: the whole environment, or None for the caller's.
        hint: what to tell the user when it cannot be started.

    Returns:
        The ending, with the last lines as `stdout`.

    Raises:
        ProcessError: the program cannot be started.
    """
    tail: collections.deque[bytes] = collections.deque(maxlen=_TAIL_LINES)
    with _started(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, hint=hint
    ) as process:
        assert process.stdout is not None  # noqa: S101 - for mypy: stdout=PIPE gives a pipe
        for line in process.stdout:
            tail.append(line)
            on_line(os.fsdecode(line.rstrip(b"\r\n")))
        returncode = process.wait()
    return Completed(argv=tuple(argv), returncode=returncode, stdout=b"".join(tail), stderr=b"")


def converse(
    argv: Sequence[str],
    *,
    reply: Callable[[bytes], bytes],
    time_limit: float,
    env: Mapping[str, str],
    cwd: str | Path,
) -> Completed:
    """Run a program that prints lines and waits for answers, in a process group of its own.

    The group is killed when the time is up, when `reply` fails, and at the end.

    Args:
        argv: program and arguments.
        reply: gets each line without its end and returns what is written to the program; nothing if empty.
        time_limit: seconds.
        env: the whole environment.
        cwd: working directory.

    Returns:
        The ending, with what the program wrote to standard error; the lines are not kept.

    Raises:
        ProcessError: the program cannot be started.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env=env, cwd=cwd, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise cannot_start(argv, error) from error
        assert process.stdin is not None  # noqa: S101 - for mypy: stdin=PIPE gives a pipe
        assert process.stdout is not None  # noqa: S101 - for mypy: stdout=PIPE gives a pipe
        out_of_time = threading.Event()

        def end() -> None:
            out_of_time.set()
            _kill_group(process.pid)

        watch = threading.Timer(time_limit, end)
        watch.start()
        try:
            with contextlib.suppress(BrokenPipeError):  # it ended without waiting for the answer; its status tells why
                for line in process.stdout:
                    if told := reply(line.rstrip(b"\n")):
                        process.stdin.write(told)
                        process.stdin.flush()
            process.wait()
        finally:
            watch.cancel()
            _kill_group(process.pid)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        errors.seek(0)
        returncode = None if out_of_time.is_set() else process.returncode
        return Completed(argv=tuple(argv), returncode=returncode, stdout=b"", stderr=errors.read())


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
