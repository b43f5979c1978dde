# SPDX-License-Identifier: GPL-3.0-or-later
"""Backends by name: third parties' among them, the cache of probes, and the choice for a session."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest
from backend_trials import probe_request

from droiddeck_session.backends import registry
from droiddeck_session.backends.interface import HostCommand, ProbeRequest
from droiddeck_session.errors import BackendError
from droiddeck_session.plan.capabilities import Capabilities

if TYPE_CHECKING:
    from droiddeck_session.plan.model import Plan

GOOD = Capabilities(backend="third", available=True, program="/x\udcff", confines=True)


class Third:
    """A third party's backend: its answers are set by the test, its probes are counted."""

    name: ClassVar[str] = "third"
    answer: ClassVar[Capabilities | Exception] = GOOD
    key: ClassVar[str] = "1"
    probes: ClassVar[list[str]] = []

    def probe(self, request: ProbeRequest) -> Capabilities:
        self.probes.append(request.scratch)
        assert not any(Path(request.scratch).iterdir())
        (Path(request.scratch) / "left").write_text("")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer.model_copy(update={"backend": self.name})

    def cache_key(self, request: ProbeRequest) -> str:
        assert request.machine
        return self.key

    def command(self, plan: Plan, capabilities: Capabilities) -> HostCommand:
        return HostCommand(argv=(capabilities.program, *plan.argv), env={}, cwd="/")


@pytest.fixture
def third(monkeypatch: pytest.MonkeyPatch) -> type[Third]:
    fresh = {"answer": GOOD, "key": "1", "probes": []}
    for name, value in fresh.items():
        monkeypatch.setattr(Third, name, value)
    return Third


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on sys.path in which a test can install packages with entry points."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "path", [str(folder), *(p for p in sys.path if not editable_or_installed(p))])
    return folder


def editable_or_installed(path: str) -> bool:
    """Tell whether the project's own entry points would be found there; these tests bring their own."""
    return any(Path(path).glob("droiddeck_session-*.dist-info"))


def install(folder: Path, **backends: str) -> None:
    info = folder / "mock-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mock\nVersion: 1\n")
    lines = "".join(f"{name} = {target}\n" for name, target in backends.items())
    (info / "entry_points.txt").write_text(f"[droiddeck_session.backends]\n{lines}")


def test_a_third_partys_backend_is_found_by_its_entry_point(packages: Path) -> None:
    (packages / "mock_backend.py").write_text("class Mock:\n    name = 'mock'\n")
    install(packages, mock="mock_backend:Mock")
    assert registry.names() == ("mock",)
    assert registry.load("mock").name == "mock"


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("not_there:Mock", "ModuleNotFoundError"),
        ("json:NotThere", "AttributeError"),
        ("broken_backend:Mock", "SystemError: boom"),
    ],
)
def test_a_broken_entry_point_is_named_and_not_fatal_to_others(packages: Path, target: str, told: str) -> None:
    (packages / "broken_backend.py").write_text("raise SystemError('boom')\n")
    (packages / "mock_backend.py").write_text("class Mock:\n    name = 'mock'\n")
    install(packages, mock="mock_backend:Mock", broken=target)
    assert registry.names() == ("broken", "mock")
    assert registry.load("mock").name == "mock"
    with pytest.raises(BackendError) as refusal:
        registry.load("broken")
    assert refusal.value.code == "BACKEND_BROKEN"
    assert "'broken'" in refusal.value.message
    assert told in refusal.value.message


def test_an_unknown_backend_is_refused_with_the_known_ones(packages: Path) -> None:
    install(packages, mock="json:loads")
    with pytest.raises(BackendError, match="'qemu'") as refusal:
        registry.load("qemu")
    assert refusal.value.code == "UNKNOWN_BACKEND"
    assert "mock" in refusal.value.hint


def test_the_projects_own_backends_are_registered() -> None:
    assert {"direct", "bwrap", "chroot", "proot"} <= set(registry.names())
    for name in ("direct", "bwrap", "chroot", "proot"):
        assert registry.load(name).name == name


def test_an_answer_is_kept_until_something_changes(third: type[Third], tmp_path: Path) -> None:
    request, cache = probe_request(tmp_path / "scratch"), tmp_path / "cache"
    first = registry.capabilities(third(), request, cache)
    assert first == registry.capabilities(third(), request, cache)
    assert len(third.probes) == 1
    assert first.program == "/x\udcff"
    third.key = "2"
    registry.capabilities(third(), request, cache)
    assert len(third.probes) == 2


def test_the_scratch_folder_is_removed(third: type[Third], tmp_path: Path) -> None:
    registry.capabilities(third(), probe_request(tmp_path / "scratch"), tmp_path / "cache")
    assert not Path(third.probes[0]).exists()


def test_that_a_backend_is_not_available_is_not_kept(third: type[Third], tmp_path: Path) -> None:
    third.answer = Capabilities(backend="third", available=False, why_not="broken", fix="mend it")
    for _ in range(2):
        assert registry.capabilities(third(), probe_request(tmp_path / "s"), tmp_path / "cache").why_not == "broken"
    assert len(third.probes) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b'"x"',
        b'{"key": 1}',
        b'{"key": "K", "capabilities": {"backend": 7}}',
        b"9" * 9000,
    ],
)
def test_a_corrupt_cache_is_probed_again_and_mended(third: type[Third], tmp_path: Path, content: bytes) -> None:
    request, cache = probe_request(tmp_path / "scratch"), tmp_path / "cache"
    registry.capabilities(third(), request, cache)
    file = cache / "probes" / "third.json"
    key = json.loads(file.read_bytes())["key"]
    file.write_bytes(content.replace(b"K", key.encode()))
    assert registry.capabilities(third(), request, cache).available
    assert registry.capabilities(third(), request, cache).available
    assert len(third.probes) == 2
    assert [path.name for path in file.parent.iterdir()] == ["third.json"]


def test_a_cache_that_cannot_be_written_is_done_without(third: type[Third], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    for _ in range(2):
        assert registry.capabilities(third(), probe_request(tmp_path / "scratch"), tmp_path / "cache").available
    assert len(third.probes) == 2


def test_a_probe_that_raises_is_an_answer(third: type[Third], tmp_path: Path) -> None:
    third.answer = RuntimeError("fell over")
    found = registry.capabilities(third(), probe_request(tmp_path / "scratch"), tmp_path / "cache")
    assert not found.available
    assert "RuntimeError: fell over" in found.why_not


def serve(monkeypatch: pytest.MonkeyPatch, **answers: Capabilities) -> None:
    backends = {name: type(name, (Third,), {"name": name, "answer": answer})() for name, answer in answers.items()}
    monkeypatch.setattr(registry, "names", lambda: tuple(sorted(backends)))
    monkeypatch.setattr(registry, "load", lambda name: backends[name])


LEAKS = Capabilities(backend="x", available=True, leaks=("statx", "openat2"))
EVERYTHING = Capabilities(backend="x", available=True, program="/x", leaks=("everything",))
MISSING = Capabilities(backend="x", available=False, why_not="x is not on PATH", fix="install x")


@pytest.mark.parametrize(
    ("answers", "chosen"),
    [
        ({"fastpath": GOOD, "proot": GOOD, "bwrap": GOOD}, "fastpath"),
        ({"proot": GOOD, "bwrap": GOOD}, "proot"),
        ({"fastpath": MISSING, "proot": LEAKS, "bwrap": GOOD}, "bwrap"),
        ({"fastpath": EVERYTHING, "proot": GOOD, "bwrap": GOOD}, "proot"),
    ],
)
def test_auto_takes_the_first_that_confines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answers: dict[str, Capabilities], chosen: str
) -> None:
    serve(monkeypatch, chroot=GOOD, direct=GOOD, **answers)
    backend, found = registry.choose("auto", probe_request(tmp_path / "scratch"), tmp_path / "cache")
    assert (backend.name, found.backend, found.confines) == (chosen, chosen, True)


def test_auto_names_the_reason_of_each_when_none_confines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    serve(monkeypatch, chroot=GOOD, direct=GOOD, fastpath=EVERYTHING, proot=LEAKS, bwrap=MISSING)
    with pytest.raises(BackendError) as refusal:
        registry.choose("auto", probe_request(tmp_path / "scratch"), tmp_path / "cache")
    assert refusal.value.code == "NO_BACKEND"
    for reason in ("fastpath: it runs the guest on the host's root", "proot: leaks statx, openat2", "x is not on PATH"):
        assert reason in refusal.value.message
    assert "doctor" in refusal.value.hint


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        (MISSING, "BACKEND_UNAVAILABLE", "x is not on PATH"),
        (EVERYTHING, "BACKEND_DOES_NOT_CONFINE", "/x runs the guest"),
    ],
)
def test_a_named_backend_that_cannot_be_used_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: Capabilities, code: str, told: str
) -> None:
    serve(monkeypatch, proot=answer)
    with pytest.raises(BackendError) as refusal:
        registry.choose("proot", probe_request(tmp_path / "scratch"), tmp_path / "cache")
    assert refusal.value.code == code
    assert told in refusal.value.message
    assert refusal.value.hint


def test_a_named_backend_that_leaks_calls_is_allowed_and_says_which(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    serve(monkeypatch, proot=LEAKS)
    _, found = registry.choose("proot", probe_request(tmp_path / "scratch"), tmp_path / "cache")
    assert found.leaks == ("statx", "openat2")


def test_the_direct_backend_may_be_named_though_it_confines_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    serve(monkeypatch, direct=EVERYTHING.model_copy(update={"rootfs": False}))
    backend, _ = registry.choose("direct", probe_request(tmp_path / "scratch"), tmp_path / "cache")
    assert backend.name == "direct"


@pytest.mark.parametrize("odd", ["fifo", "folder"])
def test_a_cache_that_is_no_file_is_done_without(third: type[Third], tmp_path: Path, odd: str) -> None:
    place = tmp_path / "cache" / "probes" / "third.json"
    place.parent.mkdir(parents=True)
    os.mkfifo(place) if odd == "fifo" else place.mkdir()
    assert registry.capabilities(third(), probe_request(tmp_path), tmp_path / "cache") == GOOD
