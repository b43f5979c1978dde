# SPDX-License-Identifier: GPL-3.0-or-later
"""How a backend is probed: its command lines run on a throw-away rootfs, and what is seen becomes capabilities.

A backend's program may be missing, hang, crash, print garbage or lie. Each of that is an answer, never an exception;
every step has a time limit, and whatever a step leaves running is found by its marker and ended.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from droiddeck_session import processes
from droiddeck_session.backends.confinement import (
    EVERYTHING,
    MARKER,
    Answer,
    Ground,
    lay_out,
    read_answer,
    read_object,
    same_places,
)
from droiddeck_session.backends.marked import all_ended, end_marked
from droiddeck_session.errors import BackendError
from droiddeck_session.paths import native_file
from droiddeck_session.plan.capabilities import Capabilities
from droiddeck_session.plan.model import Bind, FastPath, GuestReference, Identity, Plan, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from droiddeck_session.backends.interface import HostCommand, ProbeRequest

PROBE: Final = "confinement-probe"
NODENAME: Final = "droiddeck-probe"

# Arguments and a value that a shell, a splitter or a text codec would change.
_AWKWARD: Final = ("", "a  b", "back\\slash", "new\nline", "quo\"te'", "byte\udcff", "$HOME;*")
_AWKWARD_VALUE: Final = "a = 'b' \\\n\udcff"
_MOUNT_POINTS: Final = ("/made/by/nobody", "/made/file")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Seconds: for one step, for what never comes (a signal that is not forwarded), and for one backend."""

    step: float = 10.0
    patience: float = 1.0
    total: float = 40.0


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One backend on one throw-away rootfs.

    Attributes:
        command: the backend's own, from a plan and capabilities to a host command.
        provisional: what the backend may be able to do; what is off here is not tried.
        native_probe: the host's copy of the confinement probe.
        deadline: monotonic time after which no step is given more than a moment.
    """

    command: Callable[[Plan, Capabilities], HostCommand]
    provisional: Capabilities
    ground: Ground
    native_probe: str
    limits: Limits
    deadline: float

    def plan(
        self, *words: str, binds: tuple[Bind, ...] = (), identity: Identity | None = None, **changes: object
    ) -> Plan:
        """Return a plan that runs the confinement probe with these words."""
        ground, rooted = self.ground, self.provisional.rootfs
        return Plan(
            kind="run",
            label="probe",
            guest=GuestReference(name="probe", root=ground.root if rooted else "/"),
            backend=self.provisional.backend,
            identity=identity or Identity(uid=os.geteuid(), gid=os.getegid()),
            kernel_release=None,
            nodename=None,
            cwd="/bound" if rooted else ground.scratch,
            binds=(*self._base_binds(), *binds),
            environment=(
                Variable(name=MARKER, value=ground.token, origin="probe"),
                Variable(name="AWKWARD", value=_AWKWARD_VALUE, origin="probe"),
            ),
            argv=(ground.program, *words),
            fast_path=FastPath(enabled=False, why_off="a probe"),
            session=ground.host("session"),
        ).model_copy(update=changes)

    def _base_binds(self) -> tuple[Bind, ...]:
        if not self.provisional.rootfs:
            return ()
        return (
            bind(self.ground.host("bound"), "/bound"),
            bind(self.ground.host("bound-file"), "/bound-file", directory=False),
        )

    def run(self, plan: Plan, *, time_limit: float | None = None) -> processes.Completed:
        """Run a plan within what is left of the time.

        Raises:
            BackendError: the backend refuses the plan.
            ProcessError: its program cannot be started.
        """
        host = self.command(plan, self.provisional)
        return self.run_on_host(host.argv, host, time_limit=time_limit)

    def run_on_host(
        self, argv: tuple[str, ...], host: HostCommand, *, time_limit: float | None = None
    ) -> processes.Completed:
        """Run a command line with a host command's environment and folder, and end what it leaves behind."""
        left = max(0.1, self.deadline - time.monotonic())
        limit = min(time_limit or self.limits.step, left)
        try:
            return processes.run(argv, env={**host.env, MARKER: self.ground.token}, cwd=host.cwd, time_limit=limit)
        finally:
            end_marked(self.ground.token)


def bind(host: str, guest: str, *, read_only: bool = False, directory: bool = True) -> Bind:
    """Return a bind of a probe."""
    return Bind(host=host, guest=guest, reason="probe", origin="probe", read_only=read_only, directory=directory)


def examine(
    request: ProbeRequest,
    *,
    command: Callable[[Plan, Capabilities], HostCommand],
    provisional: Capabilities,
    fix: str,
    limits: Limits | None = None,
) -> Capabilities:
    """Probe a backend by running its own command lines.

    Args:
        request: what to probe with; its scratch folder is filled.
        command: the backend's `command`.
        provisional: name, program and what is worth trying.
        fix: what to tell the user if nothing can be run.
        limits: seconds.
    """
    limits = limits or Limits()
    native_probe = str(native_file(PROBE, request.machine))
    if not Path(native_probe).is_file():
        return unavailable(
            provisional, f"{native_probe} is not built", "run `make` in the checkout (it needs a C compiler)"
        )
    try:
        ground = lay_out(request.scratch, native_probe)
        processes.run([ground.program, "exit", "0"], check=True, time_limit=limits.step)
    except (OSError, processes.ProcessError) as error:
        why = f"no program can be run in {request.scratch}: {error}"
        return unavailable(provisional, why, "set TMPDIR to a folder that allows programs (not mounted noexec)")
    trial = Trial(
        command=command,
        provisional=provisional,
        ground=ground,
        native_probe=native_probe,
        limits=limits,
        deadline=time.monotonic() + limits.total,
    )
    return _capabilities(trial, fix)


def unavailable(provisional: Capabilities, why_not: str, fix: str) -> Capabilities:
    """Return the answer of a backend that cannot run here: everything is off."""
    return Capabilities(
        backend=provisional.backend,
        available=False,
        why_not=why_not,
        fix=fix,
        program=provisional.program,
        version=provisional.version,
        options=provisional.options,
        rootfs=provisional.rootfs,
    )


def _capabilities(trial: Trial, fix: str) -> Capabilities:
    plan = trial.plan("look", *trial.ground.places, *_AWKWARD)
    try:
        completed = trial.run(plan)
    except (BackendError, processes.ProcessError) as error:
        return unavailable(trial.provisional, error.message, fix)
    answer = read_answer(completed.stdout)
    if answer is None:
        return unavailable(trial.provisional, processes.failed(completed).message, fix)
    # The arguments hold this probe's own paths: an answer that was not made by our program cannot have them.
    if answer.arguments != plan.argv or answer.environment != tuple(f"{v.name}={v.value}" for v in plan.environment):
        why = f"{completed.argv[0]} changes the guest's arguments or environment"
        return unavailable(trial.provisional, why, fix)
    leaks = answer.leaks(trial.ground.token)
    if leaks == (EVERYTHING,) and trial.provisional.rootfs:
        return unavailable(trial.provisional, "", "").model_copy(update={"available": True, "leaks": leaks})
    if fault := _fault(answer, plan):
        return unavailable(trial.provisional, f"{completed.argv[0]} {fault}", fix)
    shown: dict[str, object] = {
        "backend": trial.provisional.backend,
        "available": True,
        "program": trial.provisional.program,
        "version": trial.provisional.version,
        "options": trial.provisional.options,
        "host_environment": trial.provisional.host_environment,
        "rootfs": trial.provisional.rootfs,
        "confines": not leaks,
        "leaks": leaks,
    }
    for feature in _FEATURES:
        try:
            shown.update(feature(trial))
        except (BackendError, processes.ProcessError, OSError):
            continue  # off: the backend refused it, or fell over it
    return Capabilities.model_validate(shown)


def _fault(answer: Answer, plan: Plan) -> str:
    own = (os.getuid(), os.geteuid(), os.getgid(), os.getegid())
    if answer.cwd != plan.cwd:
        return f"starts programs in {answer.cwd!r} instead of {plan.cwd!r}"
    if answer.ids != own:
        return f"changes the ids from {own} to {answer.ids} unasked"
    return ""


def _statuses(trial: Trial) -> Mapping[str, object]:
    passed = all(trial.run(trial.plan("exit", str(status))).returncode == status for status in (0, 3, 125))
    last = trial.run(trial.plan("orphan", "3", "7")).returncode
    return {"main_status": passed and last == 3}  # noqa: PLR2004 - the status asked for one line above


def _signal_statuses(trial: Trial) -> Mapping[str, object]:
    told = (
        trial.run(trial.plan("signal", str(int(number)))).returncode in (-number, 128 + number)
        for number in (signal.SIGTERM, signal.SIGKILL)
    )
    return {"signal_status": all(told)}


def _tree_ends_with_main(trial: Trial) -> Mapping[str, object]:
    host = trial.command(trial.plan("linger", "0"), trial.provisional)
    token = trial.ground.token
    try:
        completed = processes.run(
            host.argv, env={**host.env, MARKER: token}, cwd=host.cwd, time_limit=trial.limits.patience
        )
        left_behind = not all_ended(token, within=trial.limits.patience)
    finally:
        end_marked(token)
    return {"tree_ends_with_main": completed.returncode == 0 and not left_behind}


def _forwarding(trial: Trial) -> Mapping[str, object]:
    host = trial.command(trial.plan("term"), trial.provisional)
    limits = (str(int(seconds * 1000)) for seconds in (trial.limits.step, trial.limits.patience))
    completed = trial.run_on_host(
        (trial.native_probe, "forward", *limits, *host.argv), host, time_limit=2 * trial.limits.step
    )
    seen = read_object(completed.stdout)
    return {
        "forwards_signals": seen.get("told") is True,
        "stays_parent": seen.get("ready") is True and seen.get("same_process") is False,
        "traces": seen.get("traced") is True,
    }


def _look(trial: Trial, *, binds: tuple[Bind, ...] = (), identity: Identity | None = None, **changes: object) -> Answer:
    plan = trial.plan("look", *trial.ground.places, binds=binds, identity=identity, **changes)
    completed = trial.run(plan)
    answer = read_answer(completed.stdout)
    if answer is None:
        raise processes.failed(completed)
    return answer


def _nodename(trial: Trial) -> Mapping[str, object]:
    if trial.provisional.kernel_identity != "none":
        return {}  # the host name is one of the fields; see _kernel_identity
    return {"nodename": _look(trial, nodename=NODENAME).uname[1] == NODENAME}


def _kernel_identity(trial: Trial) -> Mapping[str, object]:
    host = os.uname()
    release = f"{host.release}-probe"
    fields = (host.sysname, NODENAME, release, "#1 a probe", host.machine, "localdomain")
    full = "".join(f"\\{field}" for field in (*fields, "-1")) + "\\"
    seen: Literal["none", "release", "full"] = "none"
    try:
        if _look(trial, kernel_release=full).uname == fields:
            seen = "full"
    except processes.ProcessError:
        pass  # a program that takes a bare release alone may refuse the long form
    if seen == "none" and _look(trial, kernel_release=release).uname[2] == release:
        seen = "release"
    return {"kernel_identity": seen, "nodename": seen == "full"}


def _identity(trial: Trial) -> Mapping[str, object]:
    other = Identity(uid=4242, gid=4243, emulated=True) if os.geteuid() == 0 else Identity(uid=0, gid=0, emulated=True)
    ids = _look(trial, identity=other).ids
    return {"change_identity": ids == (other.uid, other.uid, other.gid, other.gid)}


def _read_only_binds(trial: Trial) -> Mapping[str, object]:
    read_only = bind(trial.ground.host("read-only"), "/read-only", read_only=True)
    refused = all(
        trial.run(trial.plan("write", f"/read-only/{name}", binds=(read_only,))).returncode not in (0, None)
        for name in ("file", "new")
    )
    seen = trial.run(trial.plan("seen", "/read-only/file", binds=(read_only,)))
    readable = same_places(seen.stdout, [trial.ground.host("read-only/file")])
    return {"read_only_binds": refused and readable and not Path(trial.ground.host("read-only/new")).exists()}


def _colon_in_binds(trial: Trial) -> Mapping[str, object]:
    colon = bind(trial.ground.host("co:lon"), "/colon")
    seen = trial.run(trial.plan("seen", "/colon/file", binds=(colon,)))
    return {"colon_in_binds": same_places(seen.stdout, [trial.ground.host("co:lon/file")])}


def _makes_mount_points(trial: Trial) -> Mapping[str, object]:
    folder, file = trial.ground.host("bound"), trial.ground.host("bound-file")
    binds = (bind(folder, _MOUNT_POINTS[0]), bind(file, _MOUNT_POINTS[1], directory=False))
    seen = trial.run(trial.plan("seen", *_MOUNT_POINTS, binds=binds))
    # What is made in the rootfs stays there for good: that is `guest create`'s to do, and no way to show a bind.
    residue = Path(trial.ground.host("root/made")).exists()
    return {"makes_mount_points": same_places(seen.stdout, [folder, file]) and not residue}


_FEATURES: Final[tuple[Callable[[Trial], Mapping[str, object]], ...]] = (
    _statuses,
    _signal_statuses,
    _tree_ends_with_main,
    _forwarding,
    _nodename,
    _kernel_identity,
    _identity,
    _read_only_binds,
    _colon_in_binds,
    _makes_mount_points,
)
