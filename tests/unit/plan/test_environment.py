# SPDX-License-Identifier: GPL-3.0-or-later
"""Laws of merging environments and GLIBC_TUNABLES, and the guest's environment as a whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_hosts import ANDROID_APP, DEBIAN_ROOT, DEBIAN_USER, run, table

from droiddeck_session.errors import SettingError
from droiddeck_session.plan.environment import merge_tunables, merged
from droiddeck_session.plan.model import Plan, Variable
from droiddeck_session.plan.request import Request
from droiddeck_session.settings import RESERVED_VARIABLES, Settings, SyncSettings

names = st.sampled_from(["A", "B", "C", "PATH", "_x9"])
variables = st.lists(
    st.builds(Variable, name=names, value=st.text(st.characters(exclude_characters="\0")), origin=st.just("o")),
    max_size=6,
)
tunable = st.dictionaries(
    st.sampled_from(["glibc.pthread.rseq", "glibc.malloc.arena_max", "glibc.malloc.top_pad"]),
    st.text(st.characters(exclude_characters=":=\0")),
)


def as_dict(entries: tuple[Variable, ...]) -> dict[str, str]:
    return {entry.name: entry.value for entry in entries}


def text_of(entries: dict[str, str]) -> str:
    return ":".join(f"{name}={value}" for name, value in entries.items())


@given(variables, variables)
def test_each_name_is_there_once_and_the_user_s_last_value_wins(ours: list[Variable], users: list[Variable]) -> None:
    found = merged(ours, users)
    assert len({entry.name for entry in found}) == len(found)
    assert as_dict(found) == as_dict(tuple(ours)) | as_dict(tuple(users))


@given(variables, variables)
def test_the_user_s_come_after_ours(ours: list[Variable], users: list[Variable]) -> None:
    of_user = {entry.name for entry in users}
    order = [entry.name in of_user for entry in merged(ours, users)]
    assert order == sorted(order)


@given(variables, variables, variables)
def test_merging_in_two_steps_is_merging_at_once(a: list[Variable], b: list[Variable], c: list[Variable]) -> None:
    assert merged(merged(a, b), c) == merged(a, [*b, *c])


@given(variables)
def test_merging_nothing_changes_nothing_but_doubles(ours: list[Variable]) -> None:
    once = merged(ours, [])
    assert merged(once, []) == once


@given(tunable, tunable)
def test_tunables_are_merged_by_key_and_the_user_s_win(ours: dict[str, str], users: dict[str, str]) -> None:
    found = merge_tunables(text_of(ours), text_of(users))
    assert dict(entry.split("=") for entry in found.split(":") if entry) == ours | users
    assert merge_tunables(found, text_of(users)) == found
    assert merge_tunables("", found) == found


@pytest.mark.parametrize("value", ["x", "a=1:", ":a=1", "=1", "a=1:b", "a=b=c", "::"])
def test_malformed_tunables_are_named_with_their_origin_and_without_their_value(value: str) -> None:
    # Case 112.
    with pytest.raises(SettingError, match="GLIBC_TUNABLES: entry") as refusal:
        DEBIAN_ROOT.plan(run(variables=(("GLIBC_TUNABLES", value),)))
    assert refusal.value.code == "BAD_TUNABLES"
    assert refusal.value.message.startswith("flag --env: ")


def test_tunables_of_settings_and_flags_meet_ours() -> None:
    settings = Settings(environment={"GLIBC_TUNABLES": "glibc.malloc.arena_max=1:glibc.pthread.rseq=1"})
    plan = DEBIAN_ROOT.plan(run(variables=(("GLIBC_TUNABLES", "glibc.malloc.arena_max=2"),)), settings=settings)
    (found,) = [entry for entry in plan.environment if entry.name == "GLIBC_TUNABLES"]
    assert found.value == "glibc.pthread.rseq=1:glibc.malloc.top_pad=16777216:glibc.malloc.arena_max=2"
    assert found.origin == "flag --env, over default, over vendor config/environment.toml"


@pytest.mark.parametrize("name", sorted(RESERVED_VARIABLES))
def test_what_the_session_sets_itself_cannot_be_set(name: str) -> None:
    with pytest.raises(SettingError, match=name) as refusal:
        DEBIAN_ROOT.plan(run(variables=((name, "x"),)))
    assert refusal.value.code == "RESERVED_VARIABLE"
    rows = table(f'[[variable]]\nname="{name}"\nvalue="x"\nreason="r"\n', name="environment.toml")
    with pytest.raises(SettingError, match=name):
        DEBIAN_ROOT.plan(run(), tables=rows)


def value_of(plan: Plan, name: str) -> str | None:
    return as_dict(plan.environment).get(name)


def test_the_user_s_own_preload_and_braces_are_kept_as_they_are() -> None:
    # Case 95: a preload of the guest's is the user's to choose.
    plan = DEBIAN_ROOT.plan(run(variables=(("LD_PRELOAD", "/usr/lib/x.so"), ("A", "{home} {{}}"), ("HOME", "/srv"))))
    assert value_of(plan, "LD_PRELOAD") == "/usr/lib/x.so"
    assert value_of(plan, "A") == "{home} {{}}"
    assert value_of(plan, "HOME") == "/srv"
    assert [entry.name for entry in plan.environment][-2:] == ["HOME", "DROIDDECK_SESSION"]


def test_the_session_s_mark_is_the_last_variable_on_every_machine() -> None:
    for machine in (DEBIAN_ROOT, DEBIAN_USER, ANDROID_APP):
        names = [entry.name for entry in machine.plan(Request(kind="steam")).environment]
        assert names[-1] == "DROIDDECK_SESSION"
        assert len(names) == len(set(names))


def test_every_variable_has_a_reason_and_an_origin() -> None:
    for entry in ANDROID_APP.plan(Request(kind="steam")).environment:
        assert entry.reason
        assert entry.origin


def test_a_display_is_told_only_where_its_socket_is_bound() -> None:
    seen = DEBIAN_USER.plan(run())
    assert (value_of(seen, "DISPLAY"), value_of(seen, "WAYLAND_DISPLAY")) == (":0", "wayland-0")
    assert value_of(seen, "PULSE_SERVER") == "unix:/run/droiddeck/pulse/native"
    omitted = table('omit = ["/run/droiddeck/wayland-0", "/tmp/.X11-unix", "/run/droiddeck/pulse/native"]')
    unseen = DEBIAN_USER.plan(run(), tables=omitted)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "XDG_SESSION_TYPE", "PULSE_SERVER"):
        assert value_of(unseen, name) is None


def test_the_caller_s_terminal_and_zone_are_passed_on_where_known() -> None:
    assert value_of(DEBIAN_ROOT.plan(run()), "TERM") == "xterm"
    bare = DEBIAN_ROOT.having(more={"terminal": None, "timezone": None}).plan(run())
    assert (value_of(bare, "TERM"), value_of(bare, "TZ")) == ("xterm-256color", None)


def test_rows_can_ask_what_the_host_and_the_rootfs_have() -> None:
    text = '[[variable]]\nname="A"\nvalue="1"\nreason="r"\nwhen = { exists = "/h", in_rootfs = "/g" }\n'
    rows = table(text, name="environment.toml")
    both = DEBIAN_ROOT.having(host={"/h": "file"}, guest={"/g": "file"})
    assert value_of(both.plan(run(), tables=rows), "A") == "1"
    for machine in (both.having(host={"/h": "missing"}), both.having(guest={"/g": "directory"})):
        assert value_of(machine.plan(run(), tables=rows), "A") is None


def test_the_driver_s_manifest_is_named_where_an_android_guest_has_one() -> None:
    manifests = [f"/usr/share/vulkan/icd.d/freedreno_icd{mark}.json" for mark in ("", ".aarch64")]
    for manifest in manifests:
        machine = ANDROID_APP.having(guest={manifest: "file"})
        assert value_of(machine.plan(run()), "VK_ICD_FILENAMES") == manifest
    assert value_of(ANDROID_APP.plan(run()), "VK_ICD_FILENAMES") is None
    assert value_of(DEBIAN_ROOT.having(guest={manifests[0]: "file"}).plan(run()), "VK_ICD_FILENAMES") is None


@pytest.mark.parametrize(
    ("backend", "expected"),
    [("ntsync", "110"), ("fsync", "011"), ("esync", "010"), ("wineserver", "000")],
)
def test_the_sync_backend_is_told_as_scripts_of_a_rootfs_read_it(backend: str, expected: str) -> None:
    settings = Settings(sync=SyncSettings.model_validate({"backend": backend}))
    plan = DEBIAN_ROOT.plan(run(), settings=settings)
    told = [value_of(plan, name) for name in ("BL_SYNC", "BL_SYNC_FALLBACK", "BL_FSYNC_FIRST")]
    assert told == list(expected)
