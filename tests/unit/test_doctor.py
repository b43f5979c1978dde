# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of `doctor` on this machine with one fault put in at a time."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from droiddeck_session.diagnostics import backend_checks, guest_checks, machine_checks
from droiddeck_session.diagnostics.doctor import CHECKS, examine, healthy, surroundings
from droiddeck_session.diagnostics.finding import Finding, Surroundings
from droiddeck_session.errors import FilesError
from droiddeck_session.plan.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def seen_by(folder: Path, **variables: str) -> Surroundings:
    """Return the surroundings of a caller whose XDG folders are below `folder`."""
    own = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    return surroundings({"PATH": os.environ["PATH"], "HOME": str(folder), **own, **variables})


def by_id(findings: Iterable[Finding]) -> dict[str, Finding]:
    return {finding.id: finding for finding in findings}


def test_this_python_is_new_enough_and_named(tmp_path: Path) -> None:
    (found,) = machine_checks.python(seen_by(tmp_path))
    assert found.status == "ok"
    assert sys.executable in found.evidence


def test_tools_that_are_not_on_the_path_are_warned_of_with_their_package(tmp_path: Path) -> None:
    found = by_id(machine_checks.tools(seen_by(tmp_path, PATH=str(tmp_path))))
    assert found["tool.mmdebstrap"].status == "warn"
    assert found["tool.mmdebstrap"].fix == "apt-get install mmdebstrap"
    assert "guest import" in found["tool.tar"].evidence


def test_a_folder_that_cannot_be_written_is_named_with_its_variable(tmp_path: Path) -> None:
    # Nobody can make a file there, root neither.
    found = by_id(machine_checks.folders(seen_by(tmp_path, XDG_STATE_HOME="/proc/self/none")))
    assert found["folder.state"].status == "fail"
    assert "/proc/self/none" in found["folder.state"].evidence
    assert "XDG_STATE_HOME" in found["folder.state"].fix
    assert found["folder.data"].status in {"ok", "warn"}


def test_a_file_where_a_folder_should_be_fails(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    found = by_id(machine_checks.folders(seen_by(tmp_path)))
    assert found["folder.data"].status == "fail"


def test_checking_folders_leaves_nothing_behind(tmp_path: Path) -> None:
    assert len(list(machine_checks.folders(seen_by(tmp_path)))) == 3
    assert list(tmp_path.iterdir()) == []


def test_settings_that_cannot_be_used_fail_and_the_defaults_serve_the_other_checks(tmp_path: Path) -> None:
    file = tmp_path / "config" / "droiddeck-session" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[guest]\nnmae = 'x'\n")
    seen = seen_by(tmp_path)
    (found,) = machine_checks.setting_files(seen)
    assert found.status == "fail"
    assert f"{file}:2" in found.evidence
    assert found.fix
    assert seen.loaded.settings.guest.name == "demo"


def test_the_kernel_may_be_asked_about_seccomp_and_the_doctor_lives_on(tmp_path: Path) -> None:
    before = Path("/proc/self/status").read_text().partition("Seccomp:")[2].split()[0]
    (found,) = machine_checks.seccomp(seen_by(tmp_path))
    assert found.status in {"ok", "warn"}
    assert Path("/proc/self/status").read_text().partition("Seccomp:")[2].split()[0] == before


def test_a_check_that_breaks_is_a_finding_and_the_next_ones_are_made(tmp_path: Path) -> None:
    def breaks(_: Surroundings) -> Iterator[Finding]:
        yield Finding(id="half", status="ok", evidence="told before")
        raise ZeroDivisionError("of all things")

    def refuses(_: Surroundings) -> Iterator[Finding]:
        raise FilesError(code="NO_GUEST", message="there is no guest", hint="make one")

    checks = {"broken": breaks, "refused": refuses, "python": machine_checks.python}
    found = tuple(examine(seen_by(tmp_path), checks))
    assert [finding.id for finding in found] == ["half", "broken", "refused", "python"]
    assert found[1].evidence == "the check itself broke: ZeroDivisionError: of all things"
    assert (found[2].status, found[2].evidence, found[2].fix) == ("fail", "there is no guest", "make one")
    assert not healthy(found)


def test_warnings_and_skips_are_healthy() -> None:
    assert healthy(Finding(id="x", status=status, evidence="") for status in ("ok", "warn", "skip"))


def test_every_finding_that_is_not_ok_names_a_fix_where_there_is_no_guest(tmp_path: Path) -> None:
    checks = {name: check for name, check in CHECKS.items() if name != "backend"}
    for finding in examine(seen_by(tmp_path), checks):
        assert finding.evidence
        assert finding.fix or finding.status in {"ok", "skip"}, finding


def test_no_guest_is_told_with_the_command_that_makes_one(tmp_path: Path) -> None:
    (found,) = examine(seen_by(tmp_path), {"guest": guest_checks.default_guest})
    assert found.status == "fail"
    assert "droiddeck-session guest create" in found.fix


@pytest.fixture
def rootfs(tmp_path: Path) -> Path:
    root = tmp_path / "rootfs"
    for folder in ("usr/bin", "etc", "root", "home/deck", "opt/inside"):
        (root / folder).mkdir(parents=True)
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    env = root / "usr/bin/env"
    env.write_text("#!/bin/sh\n")
    env.chmod(0o755)
    return root


def test_a_link_of_the_guest_that_works_on_the_host_only_is_reported(rootfs: Path, tmp_path: Path) -> None:
    games = tmp_path / "games of mine"
    games.mkdir()
    (rootfs / "root" / "games").symlink_to(games)
    (rootfs / "root" / "inside").symlink_to("/opt/inside")
    (rootfs / "root" / "dangling").symlink_to("/nowhere/at/all")
    (rootfs / "root" / "loop").symlink_to("loop")
    (rootfs / "root" / "process").symlink_to("/proc/self/exe")
    (link,) = guest_checks.leaving_links(str(rootfs), "/root")
    assert (link.guest, link.target, link.bind) == ("/root/games", str(games), str(games))


def test_the_report_of_links_ends_in_binds_to_paste(rootfs: Path, tmp_path: Path) -> None:
    games = tmp_path / "games of mine"
    games.mkdir()
    (rootfs / "root" / "games").symlink_to(games)
    found = by_id(guest_checks.default_guest(seen_by(tmp_path, DROIDDECK_GUEST_NAME=str(rootfs))))
    assert found["guest.links"].status == "warn"
    assert f"--bind '{games}'" in found["guest.links"].fix


def test_a_guest_without_python_runs_programs_but_no_steam(rootfs: Path, tmp_path: Path) -> None:
    loader = rootfs / guest_checks.LOADERS[os.uname().machine][0].lstrip("/")
    loader.parent.mkdir(parents=True)
    loader.write_text("")
    found = by_id(guest_checks.default_guest(seen_by(tmp_path, DROIDDECK_GUEST_NAME=str(rootfs))))
    assert found["guest.programs"].status == "warn"
    assert "steam and desktop need it" in found["guest.programs"].evidence


def test_a_guest_of_another_machine_fails(rootfs: Path, tmp_path: Path) -> None:
    other = {"x86_64": 183}.get(os.uname().machine, 62)
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + (2).to_bytes(2, "little") + other.to_bytes(2, "little")
    (rootfs / "usr/bin/env").write_bytes(header)
    found = by_id(guest_checks.default_guest(seen_by(tmp_path, DROIDDECK_GUEST_NAME=str(rootfs))))
    assert found["guest.machine"].status == "fail"
    assert os.uname().machine in found["guest.machine"].evidence


def binds(folder: Path, text: str) -> Surroundings:
    file = folder / "config" / "droiddeck-session" / "binds.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return seen_by(folder)


def test_what_the_user_binds_and_is_not_there_is_told(tmp_path: Path) -> None:
    row = '[[bind]]\nhost = "{host}"\nguest = "{guest}"\nreason = "mine"\nrequired = {required}\n'
    text = row.format(host=tmp_path / "a", guest="/mnt/a", required="true")
    text += row.format(host=tmp_path / "b", guest="/mnt/b", required="false")
    found = by_id(guest_checks.binds_of_the_user(binds(tmp_path, text)))
    assert (found["bind./mnt/a"].status, found["bind./mnt/b"].status) == ("fail", "warn")
    assert str(tmp_path / "a") in found["bind./mnt/a"].evidence


def test_a_link_in_a_bound_folder_that_leads_out_of_it_is_told(tmp_path: Path) -> None:
    library, elsewhere = tmp_path / "library", tmp_path / "elsewhere"
    for folder in (library, library / "inside", elsewhere):
        folder.mkdir()
    (library / "games").symlink_to(elsewhere)
    (library / "more").symlink_to("../elsewhere")
    (library / "fine").symlink_to("inside")
    text = f'[[bind]]\nhost = "{library}"\nguest = "/srv/library"\nreason = "mine"\n'
    finding = by_id(guest_checks.binds_of_the_user(binds(tmp_path, text)))["bind./srv/library"]
    assert finding.status == "warn"
    assert f"/srv/library/games -> {elsewhere}" in finding.evidence
    assert f"--bind {elsewhere}:/srv/elsewhere" in finding.fix
    assert "fine" not in finding.evidence


def test_a_malformed_table_of_binds_names_file_and_line(tmp_path: Path) -> None:
    seen = binds(tmp_path, '[[bind]]\nhost = "relative"\nreason = "mine"\n')
    (found,) = examine(seen, {"bind": guest_checks.binds_of_the_user})
    assert found.status == "fail"
    assert "binds.toml:2" in found.evidence


@pytest.mark.parametrize(
    ("changes", "status", "evidence"),
    [
        ({"available": False, "why_not": "no proot on PATH", "fix": "apt-get install proot"}, "warn", "no proot"),
        ({"confines": True, "main_status": True}, "ok", "confines; has not: death by signal told"),
        ({"leaks": ("statx", "openat2")}, "warn", "does not confine: statx, openat2"),
        ({"leaks": ("everything",)}, "warn", "HOST"),
        ({"rootfs": False, "leaks": ("everything",)}, "skip", "for tests"),
    ],
)
def test_what_a_probe_showed_is_put_into_words(changes: dict[str, object], status: str, evidence: str) -> None:
    shown = Capabilities.model_validate({"backend": "proot", "available": True, "program": "/usr/bin/proot", **changes})
    found = backend_checks.finding("backend.proot", shown)
    assert found.status == status
    assert evidence in found.evidence
