# SPDX-License-Identifier: GPL-3.0-or-later
"""One foreground session from request to exit status: plan, folder, staging, supervision, tidying."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from typing import TYPE_CHECKING

from droiddeck_session.errors import FilesError
from droiddeck_session.guest import staging
from droiddeck_session.guest.store import use
from droiddeck_session.plan.fast_path import bound
from droiddeck_session.plan.model import OWN_ORIGIN
from droiddeck_session.processes import hold_closed_descriptors
from droiddeck_session.session import hooks
from droiddeck_session.session.client import client_of
from droiddeck_session.session.control import Entry
from droiddeck_session.session.folder import SessionFolder
from droiddeck_session.session.foreground import supervise
from droiddeck_session.session.prepare import Prepared, prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from droiddeck_session.backends.interface import HostCommand
    from droiddeck_session.plan.request import Request
    from droiddeck_session.session.control import Control


def warnings(prepared: Prepared) -> list[str]:
    """Return what a person should know before this session runs, one line each."""
    lines = []
    if prepared.capabilities.leaks:
        leaks = ", ".join(prepared.capabilities.leaks)
        lines.append(f"backend {prepared.capabilities.backend} does not confine these calls to the guest: {leaks}")
    if prepared.plan.stand_ins:
        names = ", ".join(prepared.plan.stand_ins)
        lines.append(
            f"guest {prepared.plan.guest.name!r} lacks these programs, open stand-ins take their place: {names}"
        )
    return lines


def staged_command(prepared: Prepared) -> tuple[HostCommand, str]:
    """Stage the plan into a new folder and return the host command that uses it, with the folder.

    For `plan --shell`: the folder is the user's to remove.

    Raises:
        FilesError: the folder cannot be made or filled.
    """
    parent = prepared.directories.state / "staged"
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(dir=parent)
    except OSError as error:
        raise FilesError(
            code="STATE_NOT_WRITABLE",
            message=f"cannot make a folder in {parent}: {error.strerror}",
            hint="set XDG_STATE_HOME to a folder that can be written",
        ) from error
    concrete = bound(prepared.plan, folder, secrets.token_hex(16))
    staging.stage(concrete)
    return prepared.backend.command(concrete, prepared.capabilities), folder


def launch(
    request: Request,
    flags: Mapping[str, object],
    *,
    environ: Mapping[str, str],
    tell: Callable[[str], None] = lambda _: None,
    control: Control | None = None,
) -> int:
    """Run one session in the foreground and return its exit status as design 3.9 has it.

    Args:
        request: what to run.
        flags: settings given on the command line, by dotted key.
        environ: the caller's environment.
        tell: gets each line for the person at the terminal.
        control: who drives the session besides the signals to this process.

    Raises:
        DroiddeckError: the session could not be started; nothing of it is left.
    """
    hold_closed_descriptors()
    prepared = prepare(request, flags, environ=environ)
    settings = prepared.loaded.settings.session
    token = secrets.token_hex(16)
    with contextlib.ExitStack() as stack:
        if prepared.guest is not None:
            stack.enter_context(use(prepared.guest))
        folder = stack.enter_context(
            SessionFolder.create(prepared.directories, label=prepared.plan.label, keep=settings.keep, tell=tell)
        )
        if control:
            control.folder_made(folder, settings)
        _log_start(prepared, folder)
        concrete = bound(prepared.plan, os.fspath(folder.path), token)
        folder.write("plan.json", concrete.without_values().to_json() + "\n")
        staging.stage(concrete)
        command = prepared.backend.command(concrete, prepared.capabilities)

        def enter(argv: Sequence[str]) -> HostCommand:
            return prepared.backend.command(concrete.model_copy(update={"argv": tuple(argv)}), prepared.capabilities)

        with hooks.around(folder, settings):
            ending = supervise(
                command, capabilities=prepared.capabilities, token=token, folder=folder, settings=settings,
                control=control, entry=Entry(enter, client_of(concrete)),
            )  # fmt: skip
    return ending.status


def _log_start(prepared: Prepared, folder: SessionFolder) -> None:
    """Log what is about to run, by names: no value and no argument of the user's."""
    plan = prepared.plan
    folder.log.info(
        "session starts", label=plan.label, backend=plan.backend, guest=plan.guest.name, binds=len(plan.binds),
        variables=[variable.name for variable in plan.environment],
    )  # fmt: skip
    for line in warnings(prepared):
        folder.log.warning(line)
    for bind in plan.dropped:
        # That a machine lacks what the project's own tables would show is usual; a row of the user's is missed.
        write = folder.events.emit if bind.origin.startswith(OWN_ORIGIN) else folder.record
        write("bind.left_out", host=bind.host, guest=bind.guest, origin=bind.origin, why=bind.why)
