# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the questions of `verify` under one backend and put the answers into terms that two runs have in common."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from droiddeck_session import processes
from droiddeck_session.diagnostics.verify.ground import PROGRAM, PYTHON, lay_out
from droiddeck_session.diagnostics.verify.tree import TIMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from droiddeck_session.backends.interface import Backend
    from droiddeck_session.diagnostics.verify.tree import Tree
    from droiddeck_session.guest.store import Guest
    from droiddeck_session.plan.capabilities import Capabilities
    from droiddeck_session.plan.model import Identity

TIME_LIMIT: Final = 300.0
_FILE: Final = re.compile(r"<file (\d+) (\d+)>")
_TIME: Final = re.compile(r"<time (\d+)>")
# A change of an extended attribute alone shows in no size and, on kernels before 6.13, in no time of so short a run.
_UNSEEN: Final = "xattr"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one case answered.

    Attributes:
        path_class: what is special about the path.
        refusal: what a tracer may answer instead, having changed nothing; empty if nothing.
        text: what the call said.
        changes: what it did to the tree.
    """

    path_class: str
    refusal: str
    text: str
    changes: tuple[str, ...]


@dataclass(kw_only=True)
class Run:
    """All answers of one backend by case, in the order of the questions.

    Attributes:
        ending: how the program ended if it did not ask everything; else empty.
        command: the host command, to paste; its files are there only if they were kept.
    """

    backend: str
    answers: dict[str, Answer] = field(default_factory=dict)
    seconds: float = 0.0
    ending: str = ""
    command: str = ""


def run(
    backend: Backend, capabilities: Capabilities, guest: Guest, identity: Identity, cases: Sequence[str] = (), *,
    keep: bool = False,
) -> Run:  # fmt: skip
    """Ask every question under a backend.

    Args:
        backend: the backend.
        capabilities: what its probe showed.
        guest: whose programs ask.
        identity: who asks.
        cases: patterns of the cases to ask about; the chosen ones if there is none.
        keep: leave the files of the run, so that `command` can be run again.
    """
    parent = os.path.realpath(tempfile.gettempdir())
    ground = lay_out(tempfile.mkdtemp(prefix="droiddeck-verify-", dir=parent), guest, emulated=identity.emulated)
    try:
        found = Run(backend=backend.name)
        plan = ground.plan(backend.name, identity, (PYTHON, "-ISB", PROGRAM, *cases))
        host = backend.command(plan, capabilities)
        found.command = processes.pasteable(host.argv, host.env, host.cwd)
        conversation = _Conversation(ground.tree, found)
        start = time.monotonic()
        done = processes.converse(
            host.argv, reply=conversation.reply, time_limit=TIME_LIMIT, env=host.env, cwd=host.cwd
        )
        found.seconds = time.monotonic() - start
        if done.returncode != 0:
            found.ending = processes.failed(done).message
        return found
    finally:
        if not keep:
            ground.remove()


class _Conversation:
    """Reads answers, and after each that may have changed the tree looks at it and restores it."""

    def __init__(self, tree: Tree, found: Run) -> None:
        self._tree, self._run = tree, found
        self._start = time.time_ns() - 10**9
        self._nameless = {os.stat("/proc").st_dev: "<of proc>", _device_of_pipes(): "<a pipe>"}

    def reply(self, line: bytes) -> bytes:
        case, path_class, may_change, refusal, text = self._read(line)
        changes: tuple[str, ...] = ()
        text = self._settled(text)
        if may_change:
            changes = tuple(self._tree.changes(closely=_UNSEEN in case))
            if changes:
                self._tree.restore()
        self._run.answers[case] = Answer(path_class=path_class, refusal=refusal, text=text, changes=changes)
        return (b"!" if changes else b"=") if may_change else b""

    def _read(self, line: bytes) -> tuple[str, str, bool, str, str]:
        fields: list[Any] = json.loads(line)
        case, path_class, may_change, refusal, text = fields
        return case, path_class, may_change, refusal, text

    def _settled(self, text: str) -> str:
        if "<file" in text:
            text = _FILE.sub(self._name, text)
        return _TIME.sub(self._moment, text) if "<time" in text else text

    def _name(self, found: re.Match[str]) -> str:
        device, inode = map(int, found.groups())
        if device in self._nameless:
            return self._nameless[device]
        return f"<{self._tree.name(inode)}>" if device == self._tree.device else f"<{device} {inode}>"

    def _moment(self, found: re.Match[str]) -> str:
        moment = int(found.group(1))
        return f"<{TIMES.get(moment) or ('since' if moment >= self._start else moment)}>"


def _device_of_pipes() -> int:
    ends = os.pipe()
    try:
        return os.fstat(ends[0]).st_dev
    finally:
        for end in ends:
            os.close(end)
