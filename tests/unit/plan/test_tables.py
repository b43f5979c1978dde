# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables: the vendor's are sound, the user's layer over them, and a mistake is named with file, line and key."""

from __future__ import annotations

import pytest
from plan_hosts import DEBIAN_ROOT, DEBIAN_USER, FILES, TABLES, run, table

from droiddeck_session.errors import SettingError
from droiddeck_session.layers import TableFile
from droiddeck_session.plan.model import MountPoint
from droiddeck_session.plan.staged import SESSION_ENTRIES
from droiddeck_session.plan.tables import parse_tables

ROW = '[[bind]]\nhost = "/a"\nguest = "/mnt"\nreason = "r"\n'


@pytest.mark.parametrize(
    ("text", "line", "key", "what"),
    [
        ('[[bind]]\nhost = "/a"\nguest = "mnt"\nreason = "r"\n', 3, "bind[0].guest", "not absolute"),
        ('[[bind]]\nhost = "a"\nguest = "/mnt"\nreason = "r"\n', 2, "bind[0].host", "not absolute"),
        ('[[bind]]\nhost = "/a"\nguest = "/mnt/.."\nreason = "r"\n', 3, "bind[0].guest", "root itself"),
        (f'{ROW}\n[[bind]]\nhost = "/a"\n', 6, "bind[1].reason", "missing"),
        (f"{ROW}requierd = true\n", 5, "bind[0].requierd", "unknown key"),
        (f'{ROW}required = "yes"\n', 5, "bind[0].required", "true or false"),
        (f'{ROW}when = {{ os = "beos" }}\n', 5, "bind[0].when.os", "linux"),
        (f'{ROW}when = {{ set = "nothing" }}\n', 5, "bind[0].when.set", "unknown"),
        (f'{ROW}when = {{ some_unreadable = ["/a", "b"] }}\n', 5, "bind[0].when.some_unreadable[1]", "not absolute"),
        (f'{ROW}when = {{ exists = "x" }}\n', 5, "bind[0].when.exists", "not absolute"),
        ('[[bind]]\nhost = "/{nothing}"\nreason = "r"\n', 2, "bind[0].host", "{nothing} is unknown"),
        ('[[bind]]\nhost = "/{"\nreason = "r"\n', 2, "bind[0].host", "single brace"),
        ('[[bind]]\nhost = "@session@/nothing"\nguest = "/mnt"\nreason = "r"\n', 1, "bind[0]", "@session@/nothing"),
        ('[[bind]]\nhost = "@session@/run"\nreason = "r"\n', 1, "bind[0]", "guest is missing"),
        ('[[bind]]\nhost = "/a\\u0000"\nreason = "r"\n', 2, "bind[0].host", "NUL"),
        ('omit = ["/none"]\n', 1, "omit", "'/none'"),
        ('omit = ["none"]\n', 1, "omit", "not absolute"),
        ("bind = 3\n", 1, "bind", "list"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_file_line_and_key(text: str, line: int, key: str, what: str) -> None:
    with pytest.raises(SettingError) as refusal:
        table(text, origin="/etc/x/binds.toml")
    assert refusal.value.message.startswith(f"/etc/x/binds.toml:{line}: {key}")
    assert what in refusal.value.message
    assert refusal.value.hint


def test_what_is_no_toml_is_named_with_its_place() -> None:
    with pytest.raises(SettingError, match=r"^/etc/x/binds\.toml:1:"):
        table("[[bind]\n", origin="/etc/x/binds.toml")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[[variable]]\nname = "A B"\nvalue = ""\nreason = "r"\n', "variable[0].name"),
        ('[[variable]]\nname = "A"\nvalue = "{nothing}"\nreason = "r"\n', "variable[0].value"),
        ('[[variable]]\nname = "A"\nvalue = ""\nreason = "r"\nwhen.setting = { "no.such" = 1 }\n', "variable[0].when"),
        ('[[variable]]\nname = "A"\nvalue = ""\nreason = "r"\nwhen.bound = "x"\n', "variable[0].when.bound"),
        ('omit = ["NONE"]\n', "omit"),
    ],
)
def test_a_mistake_in_the_environment_is_named_too(text: str, key: str) -> None:
    with pytest.raises(SettingError) as refusal:
        table(text, name="environment.toml", origin="/etc/x/environment.toml")
    assert refusal.value.message.startswith("/etc/x/environment.toml:")
    assert f": {key}" in refusal.value.message
    assert refusal.value.hint


def test_rows_of_later_files_come_later_and_each_knows_its_file() -> None:
    layers = [FILES["binds.toml"], TableFile("/etc/d/binds.toml", ROW), TableFile("/home/user/b.toml", ROW)]
    tables = parse_tables(layers, [])
    assert [origin for origin, _ in tables.binds[-2:]] == ["/etc/d/binds.toml", "/home/user/b.toml"]
    assert tables.binds[0].origin == "vendor config/binds.toml"
    assert len(tables.binds) == len(TABLES.binds) + 2


def test_omit_takes_all_rows_of_a_place_out_and_its_own_file_s_stay() -> None:
    text = 'omit = ["/sys/", "/proc/stat"]\n[[bind]]\nhost = "/sys"\nreason = "mine"\n'
    rows = [(origin, row.at) for origin, row in table(text).binds if row.at in {"/sys", "/proc/stat"}]
    assert rows == [("/home/user/.config/droiddeck-session/binds.toml", "/sys")]


def test_omit_and_rows_work_on_variables() -> None:
    text = 'omit = ["TU_DEBUG"]\n[[variable]]\nname = "LANG"\nvalue = "de_DE.UTF-8"\nreason = "mine"\n'
    plan = DEBIAN_ROOT.plan(run(), tables=table(text, name="environment.toml"))
    values = {entry.name: (entry.value, entry.origin) for entry in plan.environment}
    assert "TU_DEBUG" not in values
    assert values["LANG"] == ("de_DE.UTF-8", "/home/user/.config/droiddeck-session/binds.toml")


def test_a_user_s_row_can_name_what_the_caller_has() -> None:
    rows = table('[[bind]]\nhost = "{runtime_dir}/pipewire-0"\nguest = "/run/droiddeck/pipewire-0"\nreason = "r"\n')
    machine = DEBIAN_USER.having(host={"/run/user/1000/pipewire-0": "other"})
    assert "/run/user/1000/pipewire-0" in [bind.host for bind in machine.plan(run(), tables=rows).binds]
    # Where the name stands for nothing the row does not apply.
    assert DEBIAN_ROOT.plan(run(), tables=rows).dropped == ()


def test_the_vendor_s_rows_say_what_they_are() -> None:
    for origin, row in TABLES.binds:
        assert origin == "vendor config/binds.toml"
        assert row.reason
        assert row.kind or row.at.startswith(("/dev/std", "/run/droiddeck/", "/dev/dri/{"))


def test_what_a_session_stages_has_a_row() -> None:
    named = {row.host.removeprefix("@session@/") for _, row in TABLES.binds if row.host.startswith("@session@/")}
    assert named == SESSION_ENTRIES


def test_the_fixed_mount_points_are_those_that_a_debian_session_needs() -> None:
    fixed = TABLES.mount_points()
    assert {
        MountPoint(guest="/run/droiddeck", directory=True),
        MountPoint(guest="/opt/droiddeck", directory=True),
        MountPoint(guest="/etc/ld.so.preload", directory=False),
    } <= set(fixed)
    assert [point.guest for point in fixed if point.guest.startswith(("/dev/", "/proc/", "/sys/"))] == []
    # With them alone in an otherwise empty rootfs, nothing need be made.
    kinds = {point.guest: "directory" if point.directory else "file" for point in fixed}
    bare = DEBIAN_USER.having(guest={**dict.fromkeys(DEBIAN_USER.guest, "missing"), **kinds, "/usr/bin/env": "file"})
    assert bare.plan(run()).mount_points == ()
    assert bare.plan(run()).dropped == ()
