# SPDX-License-Identifier: GPL-3.0-or-later
"""What is gathered from this machine and from a guest."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from droiddeck_session.facts import Questions, gather, host_path, uname


@dataclass(frozen=True)
class Guest:
    name: str
    root: Path


def elf(machine: int, *, data: int = 1) -> bytes:
    order = "<" if data == 1 else ">"
    return b"\x7fELF" + bytes([2, data, 1]) + bytes(9) + struct.pack(f"{order}HH", 3, machine)


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    root = tmp_path / "rootfs"
    for folder in ("etc", "usr/bin", "root", "home/user/.steam"):
        (root / folder).mkdir(parents=True)
    (root / "usr/bin/env").write_bytes(elf(183))
    (root / "usr/bin/env").chmod(0o755)
    lines = [b"root:x:0:0:root:/root:/bin/bash", b"\xff:x:7:7::/home/\xfe:/bin/sh", b"again:x:0:0::/again:/bin/sh"]
    lines += [b"short:x:9", b"word:x:nine:9::/:/bin/sh", b"relative:x:11:11::home:/bin/sh", b"+::::::"]
    lines += [b"me:x:%d:5::/home/user:/bin/sh" % os.geteuid()] if os.geteuid() else []
    (root / "etc/passwd").write_bytes(b"\n".join(lines) + b"\n\0")
    (root / "etc/group").write_bytes(b"root:x:0:\nme:x:5:a,b\nbad:x:\nbad:x:6\n")
    return Guest("g", root)


def asked(place: Guest | None, environ: dict[str, str] | None = None, **questions: Any) -> Any:
    known = {"host": frozenset[str](), "guest": frozenset[str](), **questions}
    return gather(Questions(**known), guest=place, environ=environ or {})


def test_the_guest_s_accounts_are_its_own(guest: Guest) -> None:
    found = asked(guest).guest
    assert found.users[0] == ("root", "/root")
    assert found.users[7] == ("\udcff", "/home/\udcfe")
    assert set(found.users) == {0, 7, os.geteuid()}
    assert found.groups == {0, 5}
    assert found.passwd.startswith("root:x:0:0:root:/root:/bin/bash\n\udcff:x:7:")
    assert "\0" not in found.passwd


def test_a_guest_without_account_files_is_gathered_too(tmp_path: Path) -> None:
    found = asked(Guest("empty", tmp_path)).guest
    assert (found.users, found.groups, found.passwd, found.made_for) == ({}, frozenset(), "", None)
    assert found.paths["/root"].kind == "missing"


@pytest.mark.parametrize(
    ("content", "machine"),
    [
        (elf(62), "x86_64"),
        (elf(183), "aarch64"),
        (elf(3), "i686"),
        (elf(183, data=2), "aarch64"),
        (elf(9999), None),
        (b"#!/bin/sh\n" + bytes(20), None),
        (elf(62)[:19], None),
        (b"", None),
    ],
)
def test_the_machine_that_the_guest_is_made_for_is_read_from_its_env(
    guest: Guest, content: bytes, machine: str | None
) -> None:
    (guest.root / "usr/bin/env").write_bytes(content)
    assert asked(guest).guest.made_for == machine


def test_guest_paths_and_those_below_the_home_are_looked_up(guest: Guest) -> None:
    found = asked(
        guest, guest=frozenset({"/usr/bin/env", "/none", "/{{x}}"}), in_home=frozenset({".steam"})
    ).guest.paths
    assert found["/usr/bin/env"].executable
    assert found["/none"].kind == found["/{x}"].kind == "missing"
    assert found["/root/.steam"].kind == "missing"
    if os.geteuid():
        assert found["/home/user/.steam"].kind == "directory"


def test_names_of_host_paths_stand_for_what_the_caller_has(guest: Guest, tmp_path: Path) -> None:
    environ = {"XDG_RUNTIME_DIR": str(tmp_path), "WAYLAND_DISPLAY": "wayland-7", "DISPLAY": ""}
    templates = frozenset({"{runtime_dir}/x", "{wayland_socket}", "{root}/etc", "{files}/y", "{cache}", "{x_display}"})
    found = asked(guest, environ, host=templates, names={"files": "/{root}"})
    assert set(found.paths) == {f"{tmp_path}/x", f"{tmp_path}/wayland-7", f"{guest.root}/etc", "/{root}/y"}
    assert found.x_display is None
    absolute = asked(guest, {"WAYLAND_DISPLAY": "/run/w"}, host=frozenset({"{wayland_socket}"}))
    assert set(absolute.paths) == {"/run/w"}
    assert asked(guest, {"WAYLAND_DISPLAY": "w"}, host=frozenset({"{wayland_socket}"})).paths == {}


def test_the_sound_server_s_socket_is_the_one_that_the_caller_uses() -> None:
    for environ, path in (
        ({"XDG_RUNTIME_DIR": "/run/u"}, "/run/u/pulse/native"),
        ({"XDG_RUNTIME_DIR": "/run/u", "PULSE_SERVER": "unix:/srv/s"}, "/srv/s"),
        ({"PULSE_SERVER": "/srv/s"}, "/srv/s"),
        ({"XDG_RUNTIME_DIR": "/run/u", "PULSE_SERVER": "tcp:nas"}, None),
        ({}, None),
    ):
        found = asked(None, environ, host=frozenset({"{pulse_socket}"}))
        assert list(found.paths) == ([path] if path else [])


def test_the_x_cookies_are_the_caller_s_if_they_can_be_read(tmp_path: Path) -> None:
    own, other = tmp_path / ".Xauthority", tmp_path / "other"
    home = {"HOME": str(tmp_path)}
    assert asked(None, home).x_authority is None
    own.touch()
    assert asked(None, home).x_authority == str(own)
    assert asked(None, {**home, "XAUTHORITY": str(other)}).x_authority is None
    other.touch()
    assert asked(None, {**home, "XAUTHORITY": str(other)}).x_authority == str(other)
    assert asked(None, {"HOME": "", "XAUTHORITY": ".Xauthority"}).x_authority is None
    other.unlink()
    other.mkdir()
    assert asked(None, {"XAUTHORITY": str(other)}).x_authority is None


def test_host_paths_are_what_the_kernel_says(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("none")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "fifo")
    kinds = {
        name: host_path(f"{tmp_path}/{name}") for name in ("file", "link", "dangling", "loop", "fifo", "none", ".")
    }
    assert {name: found.kind for name, found in kinds.items()} == {
        "file": "file",
        "link": "file",
        "dangling": "missing",
        "loop": "missing",
        "fifo": "other",
        "none": "missing",
        ".": "directory",
    }
    assert kinds["link"].resolved == str(tmp_path.resolve() / "file")
    assert kinds["dangling"].resolved == f"{tmp_path}/dangling"
    assert [name for name, found in kinds.items() if found.readable] == ["file", "link", "fifo", "."]


def test_what_belongs_to_whoever_looks_is_not_resolved() -> None:
    # A tracer's descriptors are not the launcher's.
    for path in ("/proc/self/fd", "/proc/self/fd/0", "/proc/thread-self/fd"):
        assert host_path(path).resolved == path


def test_a_path_below_a_closed_folder_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    caller = os.geteuid()
    if caller == 0:
        # root may look anywhere, nobody may not.
        os.seteuid(65534)
    try:
        assert host_path(f"{tmp_path}/closed/x").kind == "hidden"
        assert not host_path(f"{tmp_path}/closed").readable
    finally:
        os.seteuid(caller)


@pytest.mark.parametrize(
    ("value", "zone"), [("Europe/Berlin", "Europe/Berlin"), (":Etc/GMT+3", "Etc/GMT+3"), ("UTC", "UTC")]
)
def test_the_caller_s_zone_comes_first(value: str, zone: str) -> None:
    assert asked(None, {"TZ": value}).timezone == zone


@pytest.mark.parametrize("value", ["", "/etc/localtime", "../x", "a b", "<+03>-3"])
def test_a_zone_that_is_no_name_is_not_taken(value: str) -> None:
    assert asked(None, {"TZ": value}).timezone == asked(None).timezone


def test_this_machine_is_told_as_it_is() -> None:
    found = asked(None, {"TERM": "xterm", "HOME": "/x"})
    assert (found.uid, found.gid, found.guest) == (os.geteuid(), os.getegid(), None)
    assert found.uname == uname()
    assert tuple(found.uname.model_dump().values()) == tuple(os.uname())
    assert found.terminal == "xterm"
    assert not found.android
    assert found.hosts == Path("/etc/hosts").read_text()


def test_gathering_leaves_no_descriptor_open(guest: Guest) -> None:
    asked(guest, host=frozenset({"/proc", "/etc/passwd"}))
    before = sorted(path.name for path in Path("/proc/self/fd").iterdir())
    asked(guest, host=frozenset({"/proc", "/etc/passwd"}))
    assert sorted(path.name for path in Path("/proc/self/fd").iterdir()) == before
