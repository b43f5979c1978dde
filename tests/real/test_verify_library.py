# SPDX-License-Identifier: GPL-3.0-or-later
"""`verify` with the in-process library in the guest: its answers are the kernel's, remembered or not."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from droiddeck_fastpath.backend import FastpathBackend
from droiddeck_session import processes
from droiddeck_session.backends.chroot import ChrootBackend
from droiddeck_session.diagnostics.verify.suite import prepare
from droiddeck_session.paths import native_file
from droiddeck_session.plan.model import Variable

if TYPE_CHECKING:
    from conftest import CommandLine

    from droiddeck_session.backends.interface import HostCommand
    from droiddeck_session.plan.capabilities import Capabilities
    from droiddeck_session.plan.model import Plan

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
LIBRARY = "libblfastpath.so"
KEY = "0123456789abcdef01234567"
LEAST_CASES = 10_000
LEAST_FAST_CALLS = 5_000


@pytest.mark.parametrize("life", ["0", "2000"])
def test_every_answer_of_the_library_is_the_kernels(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, life: str
) -> None:
    plain, truly, converse, told = FastpathBackend.command, ChrootBackend.command, processes.converse, []
    guest_environ = {
        "LD_PRELOAD": f"/opt/droiddeck/{LIBRARY}", "PROOT_FP_TTL_MS": life, "PROOT_FP_STATS": "1", "PROOT_FP_KEY": KEY
    }  # fmt: skip

    def bring_library(plan: Plan) -> None:
        shutil.copy(native_file(LIBRARY, os.uname().machine), Path(plan.session).parent / "programs")

    def beside_library(self: ChrootBackend, plan: Plan, capabilities: Capabilities) -> HostCommand:
        if plan.label == "verify":  # its folder is asked about too
            bring_library(plan)
        return truly(self, plan, capabilities)

    def with_library(self: FastpathBackend, plan: Plan, capabilities: Capabilities) -> HostCommand:
        if plan.label != "verify":
            return plain(self, plan, capabilities)
        bring_library(plan)
        variables = [Variable(name=name, value=value, origin="test") for name, value in guest_environ.items()]
        plan = plan.model_copy(update={"environment": (*plan.environment, *variables)})
        command = plain(self, plan, capabilities)
        return replace(command, env={**command.env, "PROOT_FASTPATH": KEY})

    def listening(*words: Any, **options: Any) -> processes.Completed:
        done = converse(*words, **options)
        told.append(os.fsdecode(done.stderr))
        return done

    monkeypatch.setattr(ChrootBackend, "command", beside_library)
    monkeypatch.setattr(FastpathBackend, "command", with_library)
    monkeypatch.setattr(processes, "converse", listening)
    suite = prepare({**os.environ, **cli.environ}, {}, backends=["fastpath"], cases=(), thorough=False, keep=False)
    ((comparison, _),) = suite.compared(suite.truth())
    assert (comparison.differences, comparison.ending) == ((), "")
    assert comparison.compared >= LEAST_CASES
    fast = re.findall(r"^fastpath\[\d+\] .*: (\d+) fast", told[-1], re.MULTILINE)
    assert sum(map(int, fast)) >= LEAST_FAST_CALLS, told[-1][-500:]
