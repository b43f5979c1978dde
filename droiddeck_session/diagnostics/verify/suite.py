# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of `verify`: the truth, then each backend, compared one by one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from droiddeck_session import facts, paths, settings
from droiddeck_session.backends import registry
from droiddeck_session.diagnostics.verify.compare import Comparison, compare
from droiddeck_session.diagnostics.verify.ground import refuse_names_of_the_host
from droiddeck_session.diagnostics.verify.run import Run, run
from droiddeck_session.errors import BackendError, UsageError
from droiddeck_session.guest.store import GuestStore, use
from droiddeck_session.plan.model import Identity
from droiddeck_session.session.prepare import probe_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from droiddeck_session.backends.interface import Backend
    from droiddeck_session.guest.store import Guest
    from droiddeck_session.plan.capabilities import Capabilities

TRUTH: Final = "chroot"
_EVERY_CASE: Final = ("*",)


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A backend that answers, or why it does not."""

    name: str
    backend: Backend | None = None
    capabilities: Capabilities | None = None
    why_not: str = ""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """What is to be asked, of whom.

    Attributes:
        guest: whose programs ask.
        identity: who asks. Emulated ids are the kernel's own in the truth, which is in a user namespace then.
        contenders: the truth first.
        cases: patterns; the chosen cases if there is none.
        keep: leave the files of each run, so that its command can be run again.
    """

    guest: Guest
    identity: Identity
    contenders: tuple[Contender, ...]
    cases: tuple[str, ...]
    keep: bool

    def truth(self) -> Run:
        """Ask the kernel.

        Raises:
            BackendError: it did not answer everything, so there is nothing to compare with.
            UsageError: no case has such an id.
        """
        found = self._run(self.contenders[0])
        if found.ending:
            raise BackendError(
                code="TRUTH_BROKEN",
                message=f"the backend {TRUTH} ended before all was asked: {found.ending}",
                hint=f"to see it: {found.command}",
            )
        if not found.answers:
            raise UsageError(
                code="NO_SUCH_CASE",
                message=f"no case is called {' or '.join(self.cases)}",
                hint="an id is CALL:PATH or CALL@PLACE:PATH, such as 'rename-to@nested:file/'; * stands for anything",
            )
        return found

    def compared(self, truth: Run) -> Iterator[tuple[Comparison, Run]]:
        """Ask each of the other backends in turn and compare what it answers."""
        for contender in self.contenders[1:]:
            if contender.backend is not None:
                answered = self._run(contender)
                yield compare(truth, answered, emulated=self.identity.emulated), answered

    def skipped(self) -> dict[str, str]:
        """Return the backends that are not asked, and why."""
        return {contender.name: contender.why_not for contender in self.contenders if contender.backend is None}

    def _run(self, contender: Contender) -> Run:
        if contender.backend is None or contender.capabilities is None:
            raise BackendError(code="BACKEND_UNAVAILABLE", message=f"{contender.name}: {contender.why_not}")
        with use(self.guest):
            return run(contender.backend, contender.capabilities, self.guest, self.identity, self.cases, keep=self.keep)


def prepare(
    environ: Mapping[str, str], flags: Mapping[str, object], *, backends: Sequence[str], cases: Sequence[str],
    thorough: bool, keep: bool,
) -> Suite:  # fmt: skip
    """Return what `verify` will ask.

    Args:
        environ: the caller's environment.
        flags: settings given on the command line, by dotted key.
        backends: names; all that are there and confine, if empty.
        cases: patterns of case ids.
        thorough: ask every call about every path.
        keep: leave the files of each run.

    Raises:
        DroiddeckError: there is no guest, the truth cannot be had here, or a named backend cannot be used.
    """
    refuse_names_of_the_host()
    directories = paths.directories(environ)
    loaded = settings.load(directories=directories, environ=environ, flags=flags)
    guest = GuestStore(directories).find(loaded.settings.guest.name)
    request = probe_request(environ, loaded, machine=facts.uname().machine)
    identity = _identity(root=loaded.settings.guest.identity == "root")
    wanted = backends or [name for name in registry.names() if name != TRUTH]
    truth, *others = (
        _contender(name, registry.load(name), registry.capabilities(registry.load(name), request, directories.cache))
        for name in (TRUTH, *wanted)
    )
    for contender in (truth, *(others if backends else ())):
        if contender.capabilities is not None and not contender.capabilities.available:
            raise BackendError(
                code="BACKEND_UNAVAILABLE",
                message=f"the backend {contender.name} cannot be used here: {contender.why_not}",
                hint=contender.capabilities.fix,
            )
    kept = (_skipped_unless_named(contender, identity, named=bool(backends)) for contender in others)
    asked = tuple(cases) or (_EVERY_CASE if thorough else ())
    return Suite(guest=guest, identity=identity, contenders=(truth, *kept), cases=asked, keep=keep)


def _identity(*, root: bool) -> Identity:
    own = os.geteuid(), os.getegid()
    uid, gid = (0, 0) if root else own
    return Identity(uid=uid, gid=gid, emulated=(uid, gid) != own)


def _contender(name: str, backend: Backend, shown: Capabilities) -> Contender:
    return Contender(name=name, backend=backend, capabilities=shown, why_not=shown.why_not)


def _skipped_unless_named(contender: Contender, identity: Identity, *, named: bool) -> Contender:
    shown = contender.capabilities
    if shown is None or named:
        return contender
    why_not = contender.why_not
    if shown.available and not shown.rootfs:
        why_not = "it has no rootfs"
    elif shown.available and not shown.confines:
        why_not = f"it does not confine: {', '.join(shown.leaks)}"
    elif shown.available and identity.emulated and not shown.change_identity:
        why_not = "it cannot show other ids"
    return Contender(name=contender.name, why_not=why_not) if why_not or not shown.available else contender
