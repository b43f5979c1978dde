#!/usr/bin/python3 -ISB
# SPDX-License-Identifier: GPL-3.0-or-later
"""droiddeck-inner: run a session's main program inside the guest, start it again where it asks, end as it ended.

    droiddeck-inner steam [--restart-status N] [--restarts N] [--url URL]... -- CLIENT [ARGS...]
    droiddeck-inner desktop -- PROGRAM [ARGS...]

A client that asks to be started again (exit 42: it has updated itself) is, a few times, without the URLs.
Two marker files in the session's own $XDG_RUNTIME_DIR steer one ending: `restart-once` and `stop-requested`.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time

OWN_FAILURE, CANNOT_RUN, NOT_FOUND = 125, 126, 127  # as env(1)

# For the client: this program outlives them to tell how the client ended.
PASSED_ON = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
ENDING = PASSED_ON - {signal.SIGUSR1, signal.SIGUSR2}
CHANGED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)  # ignored by the interpreter, which exec would hand on
SI_KERNEL = 0x80  # asm-generic/siginfo.h: made by the terminal, so the whole foreground group has it already

RESTART_ONCE, STOP_REQUESTED = "restart-once", "stop-requested"
GAMESCOPE_REAPER = b"gamescopereaper"
SWEEP_ROUNDS, SWEEP_PAUSE = 5, 0.2


class Options:
    """The command line: what to run, and for a client how often and with which URLs."""

    def __init__(self, words: list[str]) -> None:
        if not words or words[0] not in ("steam", "desktop") or "--" not in words:
            leave("usage: droiddeck-inner steam|desktop [OPTIONS] -- PROGRAM [ARGS...]")
        end = words.index("--")
        self.client = words[0] == "steam"
        self.command = words[end + 1 :]
        self.restart_status, self.restarts = 42, 3
        self.urls: list[str] = []
        pairs = words[1:end]
        if not self.command or len(pairs) % 2 or (pairs and not self.client):
            leave("a program is missing, an option has no value, or `desktop` was given options")
        for option, value in zip(pairs[::2], pairs[1::2]):  # noqa: B905 - zip's strict came with 3.10
            if option == "--url":
                self.urls.append(value)
            elif option in ("--restart-status", "--restarts") and value.isdecimal():
                setattr(self, option[2:].replace("-", "_"), int(value))
            else:
                leave(f"bad option: {option} {value}")


def say(text: str) -> None:
    """Write one line to stderr; bytes that are not UTF-8 survive."""
    os.write(2, os.fsencode(f"droiddeck-inner: {text}\n"))


def leave(text: str) -> None:
    """End with our own status and one line."""
    say(text)
    sys.exit(OWN_FAILURE)


def milestone(text: str) -> None:
    """Add a line to the session's log, if it can be reached from here; a session goes on without."""
    try:
        log = os.open(os.environ["BL_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    except (KeyError, OSError):
        return
    try:
        os.write(log, os.fsencode(time.strftime(f"== STEP %H:%M:%S {text.replace('%', '%%')}\n")))
    except OSError:
        pass
    finally:
        os.close(log)


def take_marker(name: str) -> bool:
    """Remove a marker of $XDG_RUNTIME_DIR and tell whether it was there."""
    folder = os.environ.get("XDG_RUNTIME_DIR")
    if not folder:
        return False
    try:
        os.unlink(os.path.join(folder, name))
    except OSError:
        return False
    return True


def inherited_environment() -> dict[bytes, bytes]:
    """Return the environment as it was given: under a C locale Python itself adds LC_CTYPE (PEP 538), even with -I."""
    try:
        with open("/proc/self/environ", "rb") as environ:
            entries = environ.read().split(b"\0")
    except OSError:
        return dict(os.environb)
    return {name: value for name, equals, value in (entry.partition(b"=") for entry in entries) if equals}


def run(command: list[str], caller_mask: set[int], received: set[int]) -> int:
    """Run a program to its end, pass signals on to it and return its wait status."""
    try:
        child = os.posix_spawnp(
            command[0], command, inherited_environment(), setsigmask=caller_mask, setsigdef=CHANGED_BY_PYTHON
        )
    except OSError as problem:
        say(f"cannot run {command[0]}: {problem.strerror}")
        return (NOT_FOUND if problem.errno in (errno.ENOENT, errno.ENOTDIR) else CANNOT_RUN) << 8
    milestone(f"started {os.path.basename(command[0])}")
    while True:
        got = signal.sigwaitinfo(PASSED_ON | {signal.SIGCHLD})
        if got.si_signo != signal.SIGCHLD:
            received.add(got.si_signo)
            if got.si_code != SI_KERNEL:
                os.kill(child, got.si_signo)  # not waited for yet, so the pid is still the child's
            continue
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status


def run_client(options: Options, caller_mask: set[int]) -> int:
    """Run the client until it ends for good and return its last wait status."""
    received: set[int] = set()
    urls, restarts = options.urls, 0
    take_marker(RESTART_ONCE)
    take_marker(STOP_REQUESTED)
    while True:
        status = run(options.command + urls, caller_mask, received)
        wants_restart = os.WIFEXITED(status) and os.WEXITSTATUS(status) == options.restart_status
        restart_marked = take_marker(RESTART_ONCE)
        if take_marker(STOP_REQUESTED) or received & ENDING:
            return status
        if not restart_marked:
            if not wants_restart:
                return status
            if restarts == options.restarts:
                say(f"the client asked for a restart again after {restarts}; not started any more")
                return status
            restarts += 1
        urls = []
        say("the client is started again" + ("" if restart_marked else f" ({restarts} of {options.restarts})"))


def parent_of(pid: str) -> int:
    """Return a living process's parent, 0 if there is no such process (any more)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            state, parent = stat.read().rpartition(b")")[2].split()[:2]
    except OSError:
        return 0
    return 0 if state in b"ZX" else int(parent)


def end_siblings() -> None:
    """Under gamescope: kill what else its reaper waits for, or a leftover keeps the compositor up on a black screen."""
    reaper = os.getppid()
    try:
        with open(f"/proc/{reaper}/comm", "rb") as comm:
            if comm.read().strip() != GAMESCOPE_REAPER:
                return
    except OSError:
        return
    own = str(os.getpid())
    for _ in range(SWEEP_ROUNDS):
        siblings = [pid for pid in os.listdir("/proc") if pid.isdecimal() and pid != own and parent_of(pid) == reaper]
        if not siblings:
            return
        for pid in siblings:
            kill_child_of(reaper, pid)
        time.sleep(SWEEP_PAUSE)


def kill_child_of(parent: int, pid: str) -> None:
    """Kill a process through a descriptor, after checking that it is still the one that was meant."""
    try:
        descriptor = os.pidfd_open(int(pid))
    except OSError:
        return
    try:
        if parent_of(pid) == parent:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def end_as(status: int) -> None:
    """End as the program did: with its status, or by the same signal and without a second core file."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            import resource  # noqa: PLC0415 - needed only here, and absent from Debian's python3-minimal

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        except (ImportError, OSError, ValueError):
            pass
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass  # KILL, and the two that glibc keeps, cannot be caught in the first place
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
        os.kill(os.getpid(), number)
        os._exit(128 + number)  # where a signal to oneself does nothing: the first process of a pid namespace
    os._exit(os.WEXITSTATUS(status))


def main() -> None:
    """Run the program of the command line."""
    # SIGCHLD ignored by the caller would take the status away.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    caller_mask = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON | {signal.SIGCHLD})
    options = Options(sys.argv[1:])
    if options.client:
        status = run_client(options, caller_mask)
        end_siblings()
    else:
        status = run(options.command, caller_mask, set())
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
    milestone(f"ended with {how}")
    end_as(status)


if __name__ == "__main__":
    main()
