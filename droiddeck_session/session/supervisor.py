# SPDX-License-Identifier: GPL-3.0-or-later
"""The supervisor of one session: starts its host command, waits for the main program, and leaves nothing behind.

- It waits by pidfd, never through pipes, and descriptors 0 to 2 are the program's own: who holds a pipe open delays
  nothing.
- **The status is the main program's**, known the moment it ends. Under a wrapper (bwrap, proot) the main program is
  a child of the wrapper's; its status is the kernel's record of it (Linux 6.15), else what the wrapper tells, and
  where that is known to be wrong (a tracer that tells the status of whichever process ended last) the status is lost:
  125, and the reason says so.
- **What the main program leaves** gets TERM at once and KILL after the linger time.
- A stop request (TERM, HUP) goes to the program's process group; after the grace time the whole session gets KILL.
  What other signals do: see signals.py.
- A wrapper that dies before its child is not missed: this process is a subreaper, adopts the child and waits for it.
  A tracer that dies leaves broken processes: they are killed, and the session has failed.
- Nothing is over until no member is left; one that KILL cannot end is named, and the session has failed.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING, Final

import anyio

from droiddeck_session.errors import EXIT_OWN_FAILURE, EXIT_SIGNAL_BASE, FilesError
from droiddeck_session.processes import Program, spawn
from droiddeck_session.session import main_program, signals, sweep
from droiddeck_session.session.ending import Ending, Seen, conclude
from droiddeck_session.session.membership import (
    TOKEN_VARIABLE,
    Membership,
    children,
    read_stat,
    reap_adopted,
    send,
)
from droiddeck_session.session.start_report import StartReport
from droiddeck_session.session.terminal import JOB_STOPS, REACHED_FOR_TERMINAL, Terminal, stop_ourselves
from droiddeck_session.session.wait_status import WaitStatus, has_ended, signal_name, wait_child

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import TaskGroup

    from droiddeck_session.backends.interface import HostCommand
    from droiddeck_session.plan.capabilities import Capabilities
    from droiddeck_session.session.folder import SessionFolder
    from droiddeck_session.session.main_program import MainProgram
    from droiddeck_session.settings import SessionSettings

# What a wrapper may take to end once nothing else of the session is left.
_WRAPPER_TIME: Final = 2.0


class Supervisor:
    """One session's life. Signals and the terminal come from outside: see foreground.py.

    Args:
        command: what to start.
        capabilities: what the backend's probe showed.
        token: the session's membership token, which `command` puts into the guest's environment.
        folder: where events, the log and the note for a crash go.
        settings: grace and linger time.
        terminal: the controlling terminal, if this process has one to hand over.

    Attributes:
        membership: finds the session's processes.
        stop_requested: whether somebody has asked for the session's end.
        began: set when the main program runs.
        companions: pids of further programs of the session that somebody else started and waits for.
        before_end: called before the session is asked to end, so that what is suspended can act on it.
    """

    def __init__(
        self,
        command: HostCommand,
        *,
        capabilities: Capabilities,
        token: str,
        folder: SessionFolder,
        settings: SessionSettings,
        terminal: Terminal | None = None,
    ) -> None:
        self._command = command
        self._token = token
        self._capabilities = capabilities
        self._folder = folder
        self._settings = settings
        self._terminal = terminal
        self.membership = Membership(token, ancestor=os.getpid())
        self._requests = signals.Requests()
        self._report = StartReport(command)
        self._program: Program
        self._tasks: TaskGroup
        self._main: MainProgram | None = None
        self._held_signals: list[int] = []
        self._wrapper_status: WaitStatus | None = None
        self._wrapper_ended = anyio.Event()
        self._over = anyio.Event()
        self._killing = anyio.Event()
        self.stop_requested = self._grace_runs = False
        self._tracer_died = False
        self._concluded = False
        self.began = anyio.Event()
        self.companions: set[int] = set()
        self.before_end: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start the host command, with the token in its own environment too: the guest's may be cleared.

        Raises:
            ProcessError: it cannot be started.
        """
        terminal = self._terminal.to_start_with() if self._terminal else None
        command, report = self._command, self._report
        env = {**command.env, TOKEN_VARIABLE: self._token}
        if self._capabilities.stays_parent:
            mark, _, value = main_program.WRAPPER_MARK.decode().partition("=")
            env[mark] = value
        self._program = spawn(report.argv, env=env, cwd=command.cwd, terminal=terminal, keep=report.keep)
        if self._terminal and terminal is not None:
            self._terminal.note_given(self._pid)
        self._note_processes()
        self._folder.record("guest.started", pid=self._pid, backend=self._capabilities.backend)
        if self.wrapper is None:
            self.began.set()
            self._folder.log.write_from_now_on()

    async def run(self) -> Ending:
        """Wait for the session's end, which may be asked for meanwhile, and return how it ended, nothing left of it."""
        try:
            with self._report:
                async with anyio.create_task_group() as self._tasks:
                    self._tasks.start_soon(self._follow_child)
                    if self._capabilities.stays_parent:
                        self._tasks.start_soon(self._follow_main)
                    await self._over.wait()
                    ending = await self._conclude()
                    self._concluded = True
                    self._tasks.cancel_scope.cancel()
        except BaseException:
            # A fault of ours. Nothing would be left to end the session.
            with anyio.CancelScope(shield=True):
                await sweep.kill(self.membership, wrapper=self.wrapper)
            raise
        finally:
            os.close(self._program.pidfd)
            if self._main is not None:
                os.close(self._main.pidfd)
        return ending

    def end_by(self, signum: int) -> None:
        """Answer TERM, HUP, INT or QUIT as the table in signals.py says."""
        if self._concluded:
            return
        self.before_end()
        second = self._requests.is_second(signum)
        if second or self._over.is_set():
            self.kill(f"a second request to end ({signal_name(signum)})" if second else signal_name(signum))
            return
        if second is None:
            return
        self._send_to_group(signum)
        if signum in signals.STOP_REQUESTS and not self._grace_runs:
            self.stop_requested = self._grace_runs = True
            self._folder.record("session.stopping", signal=signal_name(signum), grace=self._settings.grace)
            self._tasks.start_soon(self._kill_after_grace)

    def relay(self, signum: int) -> None:
        """Hand on a signal that does not end anything."""
        if signum == signal.SIGCONT:
            self._continue()
        else:
            self._send_to_group(signum)
        # A program that is not known yet is stopped when it is, and we with it: no sooner, or nobody would stop it.
        if signum == signal.SIGTSTP and signum not in self._held_signals:
            self._stop_with_program(signum, with_group=False)

    def hang_up(self) -> None:
        """Treat a lost terminal as HUP, unless a HUP has told of it already."""
        if not self._requests.seen(signal.SIGHUP):
            self.end_by(signal.SIGHUP)
        self._requests.ignore_more_hups()

    def children_changed(self) -> None:
        """Reap orphans that came to us, and see whether the program's group was stopped."""
        reap_adopted(spoken_for=self._spoken_for())
        for pid in self._spoken_for():
            signum = self._stop_notice(pid)
            if signum is not None and self._terminal:
                self._program_stopped(signum)

    @property
    def _pid(self) -> int:
        return self._program.process.pid

    @property
    def wrapper(self) -> int | None:
        """The pid of the process between us and the main program, if there is one."""
        return self._pid if self._capabilities.stays_parent else None

    def _spoken_for(self) -> set[int]:
        """The children whose status somebody waits for."""
        return {self._pid, *self.companions, *((self._main.pid,) if self._main else ())}

    @staticmethod
    def _stop_notice(pid: int) -> int | None:
        """Take the news that a child was stopped: the signal that did it; None where there is none."""
        try:
            change = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG)
        except ChildProcessError:
            return None
        return change.si_status if change is not None and change.si_pid else None

    async def _follow_child(self) -> None:
        await anyio.wait_readable(self._program.pidfd)
        self._wrapper_status = wait_child(self._program.pidfd) or WaitStatus(EXIT_OWN_FAILURE)
        # Popen must not wait for it again, nor for whoever gets its pid.
        self._program.process.returncode = self._wrapper_status.status
        self._wrapper_ended.set()
        if self.wrapper is None:
            self._over.set()
        elif self._main is not None:
            self._check_tracer()

    async def _follow_main(self) -> None:
        wrapper = main_program.Wrapper(self._pid, self._command.argv, self._token, self._report.child)
        main = await main_program.below(wrapper, self.membership, wrapper_ended=self._wrapper_ended.is_set)
        if main is None and self._wrapper_ended.is_set() and self._wrapper_killed():
            main = main_program.adopted(self.membership)
        if main is None:
            self._over.set()
            return
        self._main = main
        self._note_processes()
        self._folder.record("guest.main_program", pid=main.pid)
        self.began.set()
        if self._wrapper_ended.is_set():
            self._check_tracer()
        held, self._held_signals = self._held_signals, []
        for signum in held:
            self.relay(signum)
        # Not before: a program of a few milliseconds is only seen by one who has nothing else to do.
        self._folder.log.write_from_now_on()
        await anyio.wait_readable(main.pidfd)
        self._over.set()

    def _note_processes(self) -> None:
        started = read_stat(self._pid)
        known = [started.identity] if started else []
        known += [self._main.identity] if self._main else []
        # Without the note, the next start after a crash has the token alone.
        with contextlib.suppress(FilesError):
            self._folder.note(self._token, known)

    def _wrapper_killed(self) -> bool:
        return self._wrapper_status is not None and self._wrapper_status.signal is not None

    def _could_not_start(self) -> bool:
        """Whether the wrapper failed to set up the guest, by itself: 128+n tells that signal n ended what did it."""
        status = self._wrapper_status
        failed = status is not None and status.status <= EXIT_SIGNAL_BASE and not self._requests.any
        return failed and self._report.never_started()

    def _check_tracer(self) -> None:
        """See whether a tracer ended before its main program; a mere wrapper may."""
        if not self._capabilities.traces or self._main is None or self._killing.is_set():
            return
        # A tracer whose tracees die with it (EXITKILL) is gone by a signal, and so are they, in either order.
        if not has_ended(self._main.pidfd) or (self._wrapper_killed() and not self._over.is_set()):
            self._tracer_died = True
            self._over.set()

    def _group(self) -> int | None:
        """The main program's process group; None while the main program is not known."""
        known = self._main.pid if self._main else self._pid if self.wrapper is None else None
        stat = read_stat(known) if known else None
        return stat.group if stat else None

    def _send_to_group(self, signum: int, *, wrapper_too: bool = False) -> None:
        if self.wrapper is not None and self._main is None and not self._over.is_set():
            self._held_signals.append(signum)
            return
        group = self._group()
        besides = () if self.wrapper is None or wrapper_too else (self.wrapper,)
        members = [member for member in self.membership.living(besides=besides) if member.group == group]
        reached = sum(send(member.identity, signum) for member in members)
        self._folder.record("signal.forwarded", signal=signal_name(signum), processes=reached)

    def _program_stopped(self, signum: int) -> None:
        """The program's group was stopped: let it have the terminal that it reached for, or stop with it."""
        terminal = self._terminal if signum in REACHED_FOR_TERMINAL else None
        if terminal:
            terminal.note_reached_for()
        if terminal and terminal.is_ours:
            self._continue()
        elif signum in JOB_STOPS:
            self._stop_with_program(signum, with_group=True)

    def _stop_with_program(self, signum: int, *, with_group: bool) -> None:
        foreground = self._terminal is not None and (self._terminal.given or self._terminal.is_ours)
        if self._terminal:
            self._terminal.take_back(members=self._groups())
        continued = stop_ourselves(signum, with_group=with_group)
        # The program's own stop, if it came after ours: news of it now would stop us again.
        for pid in self._spoken_for():
            self._stop_notice(pid)
        if not continued and foreground:
            # Our group is orphaned and the kernel stops nobody in it; without us it would not have stopped the
            # program.
            self._continue()

    def _continue(self) -> None:
        group = self._group()
        if self._terminal and group is not None:
            self._terminal.give(group)
        self._send_to_group(signal.SIGCONT, wrapper_too=True)

    def _groups(self) -> set[int]:
        return {member.group for member in self.membership.living()}

    async def _kill_after_grace(self) -> None:
        await anyio.sleep(self._settings.grace)
        self.kill("the grace time is over")

    def kill(self, reason: str) -> None:
        """Send KILL to all members now."""
        if not self._killing.is_set():
            self._killing.set()
            self.stop_requested = True
            self._folder.record("session.killing", reason=reason)
            self._tasks.start_soon(self._kill_everything)

    async def _kill_everything(self) -> None:
        # What was ended is noticed by those who follow it; what was not would keep them waiting.
        if await sweep.kill(self.membership, wrapper=self.wrapper):
            self._over.set()

    async def _conclude(self) -> Ending:
        """End what is left, and say how the session ended."""
        main = await self._main_status()
        if self._terminal:
            self._terminal.take_back(members=self._groups())
            if main is None or main.signal is not None:
                self._terminal.restore()
        if main is not None:
            self._record_exit(main)
        leftovers = self.membership.living(besides={self._pid})
        if self._tracer_died:
            how = self._wrapper_status.in_words() if self._wrapper_status else ""
            self._folder.record("tracer.died", pid=self._pid, how=how)
        elif not self._killing.is_set():
            await self._let_end(has_leftovers=bool(leftovers))
        survivors = []
        # With no member seen and no child left there is no descendant either: every orphan would be our child.
        if leftovers or children(os.getpid()):
            survivors = await sweep.kill(self.membership, wrapper=self.wrapper)
        if not survivors:
            await self._wrapper_ended.wait()
            self.children_changed()
            if self._command.leavings:
                sweep.remove_leavings(self._command.leavings, self._pid)
        seen = Seen(
            main=main,
            wrapper=self._wrapper_status if self.wrapper is not None else None,
            had_leftovers=bool(leftovers),
            never_started=self._could_not_start(),
            tracer_died=self._tracer_died,
            killed=self._killing.is_set(),
            stop_requested=self.stop_requested,
            survivors=tuple(process.in_words() for process in survivors),
        )
        if main is None and self._wrapper_status is not None and not self._tracer_died:
            self._record_exit(self._wrapper_status)
        return conclude(seen, self._capabilities)

    async def _let_end(self, *, has_leftovers: bool) -> None:
        """Give what is left the linger time, and then the wrapper a while to tell its status."""
        if has_leftovers:
            leave = sweep.outlast if self._settings.wait_for == "tree" else sweep.terminate
            await leave(self.membership, wrapper=self.wrapper, seconds=self._settings.linger, cut_short=self._killing)
            if self.membership.living(besides={self._pid}):
                return
        with anyio.move_on_after(_WRAPPER_TIME):
            await self._wrapper_ended.wait()

    async def _main_status(self) -> WaitStatus | None:
        if self.wrapper is None:
            return self._wrapper_status
        if self._main is None or not has_ended(self._main.pidfd):
            return None
        return await main_program.wait_status(self._main)

    def _record_exit(self, status: WaitStatus) -> None:
        name = signal_name(status.signal) if status.signal is not None else None
        self._folder.record("guest.exited", status=status.status, signal=name, backend=self._capabilities.backend)
