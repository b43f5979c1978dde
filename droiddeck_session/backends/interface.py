# SPDX-License-Identifier: GPL-3.0-or-later
"""What a backend is: a way to run a plan. It only reads a finished plan; what its probe did not show is off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from droiddeck_session.plan.capabilities import Capabilities
    from droiddeck_session.plan.model import Plan

# PATH of the host programs themselves; the guest's own is in the plan.
HOST_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, kw_only=True)
class HostCommand:
    """One program to start on the host.

    Attributes:
        argv: program and arguments, each exactly as execve(2) gets it.
        env: the whole environment of the host program; the guest's own is in the plan's command line.
        cwd: host path of its working directory.
        report_option: an option that makes the program report on a descriptor as bwrap(1)'s `--json-status-fd` does,
            `exit-code` only if it started the guest's program; who runs the command may insert it after argv[0].
        leavings: a glob pattern of files that the program makes wherever else, and leaves when it is
            killed; `{pid}` stands for its process id.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    report_option: str = ""
    leavings: str = ""


@dataclass(frozen=True, kw_only=True)
class ProbeRequest:
    """What a probe may need to know.

    Attributes:
        environ: the caller's environment (PATH, TMPDIR).
        programs: paths from the settings by backend name, where the user chose one.
        scratch: an empty folder that the probe may fill; it is removed afterwards. Empty where nothing is probed.
        machine: as uname(2) has it; selects the native probe program.
    """

    environ: Mapping[str, str]
    programs: Mapping[str, str]
    machine: str
    scratch: str = ""


class Backend(Protocol):
    """A backend, registered in the entry-point group `droiddeck_session.backends` under its name."""

    name: ClassVar[str]

    def probe(self, request: ProbeRequest) -> Capabilities:
        """Find out, in subprocesses with a time limit, what works here. Impure; the registry caches the answer.

        Never raises for a missing or broken program: that is an answer (`available=False`, with `why_not` and `fix`).
        """
        ...

    def cache_key(self, request: ProbeRequest) -> str:
        """Return what the probe's answer depends on (the program's path, size and times), cheaply."""
        ...

    def command(self, plan: Plan, capabilities: Capabilities) -> HostCommand:
        """Return the host command that runs a concrete plan. Pure.

        Raises:
            BackendError: the plan asks for something that this backend cannot do; names the thing.
        """
        ...
