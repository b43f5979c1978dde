# SPDX-License-Identifier: GPL-3.0-or-later
"""Which binds a session has, where they go, and what is refused by name: the odd ones of case 71 and their like."""

from __future__ import annotations

import json

import pytest
from plan_hosts import ANDROID_APP, BWRAP, DEBIAN_ROOT, DEBIAN_USER, TRACER, Machine, run, table

from droiddeck_session.errors import PlanError
from droiddeck_session.plan.model import Bind, MountPoint, Plan
from droiddeck_session.plan.request import Request, parse_bind
from droiddeck_session.plan.staged import LEAVINGS

TRACED = DEBIAN_ROOT.having(capabilities=TRACER.model_copy(update={"backend": "proot"}))
HOST = DEBIAN_ROOT.having(host={"/a": "directory", "/a/b": "directory", "/a/b/c": "directory", "/f": "file"})
SESSION_ON_ANDROID = "/data/user/0/org.example/files/session"


def found(plan: Plan, guest: str) -> Bind:
    return next(bind for bind in plan.binds if bind.guest == guest)


def refused(machine: Machine, *binds: tuple[str, str], code: str, names: str) -> None:
    with pytest.raises(PlanError) as refusal:
        machine.plan(run(*binds))
    assert refusal.value.code == code
    assert names in refusal.value.message
    assert "flag --bind" in refusal.value.message
    assert refusal.value.hint


def test_a_missing_source_of_a_flag_is_refused_by_name() -> None:
    # Case 66. A dangling link is missing too.
    refused(HOST, ("/no/such", "/mnt"), code="BIND_MISSING", names="/no/such")
    refused(HOST.having(host={"/hid": "hidden"}), ("/hid", "/mnt"), code="BIND_MISSING", names="/hid")


def test_a_missing_source_of_a_row_is_told_or_refused_as_the_row_says() -> None:
    row = '[[bind]]\nhost="/no/such"\nguest="/mnt"\nreason="r"\n'
    plan = HOST.plan(run(), tables=table(row))
    (dropped,) = plan.dropped
    assert (dropped.host, dropped.guest, dropped.why) == ("/no/such", "/mnt", "there is no such file")
    assert dropped.origin.endswith("binds.toml")
    with pytest.raises(PlanError, match="/no/such") as refusal:
        HOST.plan(run(), tables=table(f"{row}required=true\n"))
    assert refusal.value.code == "BIND_MISSING"


def test_the_kernel_s_own_trees_are_required() -> None:
    with pytest.raises(PlanError, match="'/proc'") as refusal:
        HOST.having(host={"/proc": "missing"}).plan(run())
    assert refusal.value.code == "BIND_MISSING"


def test_a_colon_is_refused_where_the_backend_cannot_express_it() -> None:
    # Case 65.
    rows = table('[[bind]]\nhost="/co:lon"\nguest="/mnt"\nreason="r"\n')
    machine = DEBIAN_ROOT.having(host={"/co:lon": "directory"})
    assert found(machine.plan(run(), tables=rows), "/mnt").host == "/co:lon"
    with pytest.raises(PlanError, match="/co:lon") as refusal:
        machine.having(capabilities=TRACER).plan(run(), tables=rows)
    assert refusal.value.code == "COLON_IN_BIND"


def test_a_colon_that_a_link_leads_to_counts() -> None:
    refused(
        TRACED.having(host={"/link": "directory"}, links={"/link": "/co:lon"}),
        ("/link", "/mnt"), code="COLON_IN_BIND", names="/co:lon",
    )  # fmt: skip


def test_a_source_is_resolved() -> None:
    # Cases 67 and 69.
    plan = HOST.having(links={"/a": "/data/games"}).plan(run(("/a", "/mnt")))
    assert found(plan, "/mnt").host == "/data/games"


def test_read_only_is_refused_where_it_cannot_be_kept() -> None:
    # Case 70.
    request = Request(
        kind="run", argv=("true",), binds=(parse_bind("/a:/mnt", read_only=True, origin="flag --ro-bind"),)
    )
    assert found(HOST.plan(request), "/mnt").read_only
    with pytest.raises(PlanError, match="'/mnt'") as refusal:
        TRACED.having(host={"/a": "directory"}).plan(request)
    assert refusal.value.code == "READ_ONLY_BIND"


@pytest.mark.parametrize("machine", [HOST, HOST.having(capabilities=TRACER)], ids=["kernel", "tracer"])
def test_a_file_and_a_folder_are_not_bound_on_each_other(machine: Machine) -> None:
    refused(machine, ("/f", "/root"), code="BIND_KIND", names="/root")
    refused(machine, ("/a", "/etc/passwd"), code="BIND_KIND", names="/etc/passwd")
    refused(machine, ("/a", "/mnt"), ("/f", "/mnt/b"), code="BIND_KIND", names="/mnt/b")
    refused(machine, ("/f", "/mnt"), ("/f", "/mnt/x"), code="MOUNT_POINT", names="/mnt/x")


def test_a_user_s_row_on_the_wrong_kind_is_refused_and_the_vendor_s_is_left_out() -> None:
    with pytest.raises(PlanError) as refusal:
        HOST.plan(run(), tables=table('[[bind]]\nhost="/f"\nguest="/root"\nreason="r"\n'))
    assert refusal.value.code == "BIND_KIND"
    plan = HOST.having(guest={"/etc/hosts": "directory"}).plan(run())
    (dropped,) = plan.dropped
    assert (dropped.guest, dropped.why) == ("/etc/hosts", "a file cannot be bound on a folder")
    assert "etc/hosts" not in [file.path for file in plan.staged]


def test_of_one_guest_path_the_last_wins() -> None:
    plan = HOST.plan(run(("/a", "/mnt"), ("/f", "/mnt"), ("/a/b", "/mnt")))
    assert [bind.host for bind in plan.binds if bind.guest == "/mnt"] == ["/a/b"]


def test_a_user_s_row_replaces_the_vendor_s_and_keeps_its_origin() -> None:
    plan = HOST.plan(run(), tables=table('[[bind]]\nhost="/a"\nguest="/tmp"\nreason="mine"\n'))
    assert [(bind.host, bind.reason) for bind in plan.binds if bind.guest == "/tmp"] == [("/a", "mine")]
    assert found(plan, "/tmp").origin == "/home/user/.config/droiddeck-session/binds.toml"
    assert found(plan, "/dev").origin == "vendor config/binds.toml"
    assert "tmp" not in [file.path for file in plan.staged]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_parents_come_before_children_in_whatever_order_they_are_asked_for(order: tuple[int, ...]) -> None:
    # Case 57.
    asked = [("/a", "/m"), ("/a/b", "/m/b"), ("/a/b/c", "/m/b/c")]
    plan = HOST.plan(run(*(asked[index] for index in order)))
    assert [bind.guest for bind in plan.binds if bind.guest.startswith("/m")] == ["/m", "/m/b", "/m/b/c"]
    assert [point for point in plan.mount_points if point.guest.startswith("/m")] == [
        MountPoint(guest="/m", directory=True)
    ]


def test_what_a_foreign_folder_has_no_place_for_is_refused() -> None:
    refused(HOST, ("/a", "/m"), ("/f", "/m/none"), code="MOUNT_POINT", names="/a/none")
    # A tracer shows it.
    traced = HOST.having(capabilities=TRACER)
    assert found(traced.plan(run(("/a", "/m"), ("/f", "/m/none"))), "/m/none").host == "/f"


def test_a_place_in_the_session_s_own_folder_is_made_there() -> None:
    plan = HOST.plan(run(("/f", "/tmp/deep/down/file"), ("/a", "/run/droiddeck/dir")))
    staged = {file.path: file for file in plan.staged}
    assert staged["tmp/deep/down/file"].content == ""
    assert staged["run/dir"].is_folder
    assert [path for path in staged if path.startswith("tmp")] == [
        "tmp",
        "tmp/deep",
        "tmp/deep/down",
        "tmp/deep/down/file",
    ]
    assert staged["tmp"].mode == 0o1777
    assert plan.mount_points == ()


def test_parents_come_before_children_after_the_guest_s_links_are_followed() -> None:
    # Case 17 of the launcher's list: by its own name the link comes before its parent-to-be.
    machine = HOST.having(guest_links={"/link": "/m/b"}, capabilities=TRACER)
    plan = machine.plan(run(("/a/b/c", "/link"), ("/a", "/m")))
    assert [bind.guest for bind in plan.binds if bind.guest.startswith("/m")] == ["/m", "/m/b"]


OF_A_PROCESS = [
    *("/proc/self", "/proc/self/fd/0", "/proc/thread-self/comm", "/proc/1", "/proc/4711/cwd", "/proc/mounts"),
    *("/proc/net/dev", "/dev/fd", "/dev/fd/3", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/proc/self/new\nline"),
]


@pytest.mark.parametrize("guest", OF_A_PROCESS)
@pytest.mark.parametrize("machine", [HOST, TRACED, ANDROID_APP], ids=["kernel", "tracer", "android"])
def test_a_bind_that_no_process_would_see_is_refused(machine: Machine, guest: str) -> None:
    # Case 71. Whether the guest path exists plays no part: a kernel mounts on the mounter's own.
    machine = machine.having(host={"/f": "file", guest: "file"})
    refused(machine, ("/f", guest), code="BIND_IN_PROCESS", names=repr(guest))
    refused(machine.having(guest_links={"/link": guest}), ("/f", "/link"), code="BIND_IN_PROCESS", names="/link")
    with pytest.raises(PlanError, match="binds\\.toml") as refusal:
        machine.plan(run(), tables=table(f'[[bind]]\nhost="/f"\nguest={json.dumps(guest)}\nreason="r"\n'))
    assert refusal.value.code == "BIND_IN_PROCESS"


@pytest.mark.parametrize("guest", ["/proc/selfish", "/proc/sys/kernel/hostname", "/proc/1x", "/dev/fd0", "/dev/std"])
def test_a_name_that_only_looks_like_a_process_s_is_bound(guest: str) -> None:
    assert found(HOST.having(host={guest: "file"}).plan(run(("/f", guest))), guest).host == "/f"


def test_what_android_s_dev_lacks_is_made_of_each_process_s_own() -> None:
    plan = ANDROID_APP.plan(run())
    shown = {bind.guest: bind.host for bind in plan.binds if bind.host.startswith("/proc/self/")}
    assert shown == {
        "/dev/fd": "/proc/self/fd",
        "/dev/stdin": "/proc/self/fd/0",
        "/dev/stdout": "/proc/self/fd/1",
        "/dev/stderr": "/proc/self/fd/2",
    }
    assert plan.dropped == ()


def test_a_guest_s_links_are_followed_in_guest_paths() -> None:
    machine = HOST.having(guest_links={"/etc/resolv.conf": "/run/stub", "/var/run/x": "/run/x"})
    plan = machine.plan(run(("/f", "/var/run/x")))
    assert found(plan, "/run/stub").host == "@session@/etc/resolv.conf"
    assert found(plan, "/run/x").host == "/f"
    assert {"/run/stub", "/run/x"} == {point.guest for point in plan.mount_points}


def test_below_another_bind_the_rootfs_s_links_do_not_count() -> None:
    machine = HOST.having(guest_links={"/m": "/n", "/m/b": "/elsewhere"})
    plan = machine.plan(run(("/a", "/m"), ("/a/b/c", "/m/b")))
    assert [bind.guest for bind in plan.binds if bind.host in {"/a", "/a/b/c"}] == ["/n", "/n/b"]


def test_two_names_of_one_place_are_one_bind() -> None:
    machine = HOST.having(guest_links={"/link": "/m"})
    plan = machine.plan(run(("/a", "/m"), ("/a/b", "/link")))
    assert [bind.host for bind in plan.binds if bind.guest == "/m"] == ["/a/b"]


def test_a_link_to_the_root_is_no_place() -> None:
    refused(HOST.having(guest_links={"/m": "/"}), ("/a", "/m"), code="MOUNT_POINT", names="/m")


@pytest.mark.parametrize("machine", [HOST, HOST.having(capabilities=TRACER)], ids=["kernel", "tracer"])
def test_a_place_that_nothing_can_be_at_is_refused_or_left_out(machine: Machine) -> None:
    refused(machine, ("/f", "/mnt/" + "x" * 256), code="MOUNT_POINT", names="x" * 256)
    refused(machine, ("/f", "/mnt/" + "ä" * 128), code="MOUNT_POINT", names="longer than 255 bytes")
    assert found(machine.plan(run(("/f", "/mnt/" + "x" * 255))), "/mnt/" + "x" * 255)
    looped = machine.having(guest={"/loop": "unreachable", "/etc/hosts": "unreachable"})
    refused(looped, ("/f", "/loop"), code="MOUNT_POINT", names="a loop of links or a file is in its way")
    assert [dropped.guest for dropped in looped.plan(run()).dropped] == ["/etc/hosts"]


def test_a_read_only_rootfs_works_and_what_it_lacks_is_refused_or_left_out() -> None:
    machine = HOST.having(guest_read_only=True, guest={"/etc/hosts": "missing"})
    plan = machine.plan(run())
    assert plan.mount_points == ()
    assert [dropped.guest for dropped in plan.dropped] == ["/etc/hosts"]
    refused(machine, ("/a", "/mnt/new"), code="MOUNT_POINT", names="/mnt/new")
    lacks_run = machine.having(guest={"/run/droiddeck": "missing"})
    with pytest.raises(PlanError, match="/run/droiddeck"):
        lacks_run.plan(run())
    assert found(lacks_run.having(capabilities=TRACER).plan(run()), "/run/droiddeck")


def test_odd_bytes_survive() -> None:
    odd = "/o d\nd\udcff"
    plan = DEBIAN_ROOT.having(host={odd: "directory"}).plan(
        run((odd, f"{odd}/x"), ("/tmp/.X11-unix", f"/run/droiddeck{odd}"))
    )
    assert found(plan, f"{odd}/x").host == odd
    assert Plan.from_json(plan.to_json()) == plan
    assert f"run{odd}" in [file.path for file in plan.staged]


def test_braces_of_a_flag_are_no_names() -> None:
    plan = DEBIAN_ROOT.having(host={"/{root}": "directory"}).plan(run(("/{root}", "/{files}")))
    assert found(plan, "/{files}").host == "/{root}"


def test_a_readable_proc_file_is_not_covered() -> None:
    # Cases 14 and 15 of the launcher's list.
    assert [bind.guest for bind in DEBIAN_ROOT.plan(run()).binds if bind.guest.startswith("/proc/")] == []
    closed = DEBIAN_ROOT.having(unreadable=frozenset({"/proc/stat", "/proc/version"}))
    plan = closed.plan(run())
    assert [bind.guest for bind in plan.binds if bind.guest.startswith("/proc/")] == ["/proc/stat", "/proc/version"]
    text = next(file.content for file in plan.staged if file.path == "proc/version")
    assert text is not None
    assert text.startswith("Linux version 6.12.38-deb13 ")
    live = closed.having(host={"/live": "file"}).plan(run(("/live", "/proc/stat")))
    assert found(live, "/proc/stat").host == "/live"
    assert "proc/stat" not in [file.path for file in live.staged]


def test_on_android_an_absent_proc_file_is_replaced_where_the_backend_can_show_it() -> None:
    absent = {"/proc/loadavg": "missing", "/proc/bus/pci/devices": "missing"}
    plan = ANDROID_APP.having(host=absent).plan(run())
    assert {"@session@/proc/loadavg", "@session@/proc/pci_devices"} <= {bind.host for bind in plan.binds}
    # A kernel has nothing to mount on there, which is told; elsewhere what is absent is so by choice.
    kernel = ANDROID_APP.having(host=absent, capabilities=BWRAP).plan(run())
    assert set(absent) <= {dropped.guest for dropped in kernel.dropped}
    linux = TRACED.plan(run())
    assert [bind.guest for bind in linux.binds if bind.guest.startswith("/proc/")] == []
    assert linux.dropped == ()


def test_controllers_have_their_switch() -> None:
    off = ANDROID_APP.having(host={"/storage/emulated/0/Download/droiddeck-no-pad": "file"})
    no_storage = ANDROID_APP.having(
        android_settings=ANDROID_APP.android_settings.model_copy(update={"storage": None})
    )  # fmt: skip
    for machine, shown in ((ANDROID_APP, True), (off, False), (no_storage, True)):
        plan = machine.plan(Request(kind="steam"))
        assert ("/dev/input" in [bind.guest for bind in plan.binds]) is shown
        assert ("SDL_JOYSTICK_DISABLE_UDEV" in [entry.name for entry in plan.environment]) is shown


@pytest.mark.parametrize("counter", ["gpu_busy_percentage", "clock_mhz", "temp"])
def test_gpu_counters_are_replaced_only_where_one_is_there_and_closed(counter: str) -> None:
    closed = f"/sys/class/kgsl/kgsl-3d0/{counter}"
    fed = {f"{SESSION_ON_ANDROID}/sys/kgsl-3d0/{name}": "file" for name in ("perf_now", "cur_freq")}
    machine = ANDROID_APP.having(
        host={f"{SESSION_ON_ANDROID}/sys/kgsl-3d0": "directory", **fed, closed: "file"}
    )  # fmt: skip
    places = [f"{SESSION_ON_ANDROID}/sys/kgsl-3d0", *fed]
    open_ones = [bind.host for bind in machine.plan(run()).binds]
    assert not set(places) & set(open_ones)
    shut = machine.having(unreadable=machine.unreadable | {closed}).plan(run())
    assert set(places) <= {bind.host for bind in shut.binds}


def test_the_x_server_s_cookie_comes_with_its_socket() -> None:
    assert found(DEBIAN_USER.plan(run()), "/run/droiddeck/Xauthority").host == "/home/user/.Xauthority"
    for more in ({"x_display": None}, {"x_authority": None}):
        plan = DEBIAN_USER.having(more=more).plan(run())
        assert "/run/droiddeck/Xauthority" not in [bind.guest for bind in plan.binds]
        assert "XAUTHORITY" not in [entry.name for entry in plan.environment]


def test_programs_of_a_session_have_a_folder_that_stays_with_its_record() -> None:
    plan = DEBIAN_ROOT.plan(Request(kind="steam"))
    assert found(plan, "/run/droiddeck/debug").host == "@session@/debug"
    log = next(file for file in plan.staged if file.path == "debug/inner.log")
    assert log.content == ""
    values = {entry.name: entry.value for entry in plan.environment}
    assert values["BL_LOG"] == "/run/droiddeck/debug/inner.log"
    assert values["BL_DEBUG_DIR"] == "/run/droiddeck/debug"
    assert "debug" not in LEAVINGS


def test_the_android_tables_live_stand_in_wins_over_the_constant_text() -> None:
    plan = ANDROID_APP.plan(Request(kind="steam"))
    assert found(plan, "/proc/stat").host.endswith("/session/proc-stat")
    assert "proc/stat" not in [file.path for file in plan.staged]


def test_passwd_and_group_are_staged_only_for_ids_that_the_guest_does_not_know() -> None:
    assert {"/etc/passwd", "/etc/group"}.isdisjoint(bind.guest for bind in DEBIAN_ROOT.plan(run()).binds)
    mixed = DEBIAN_ROOT.having(uid=1000, gid=1).plan(run())
    assert "/etc/group" not in [bind.guest for bind in mixed.binds]
    text = next(file.content for file in mixed.staged if file.path == "etc/passwd")
    assert text is not None
    assert text.splitlines()[:2] == ["root:x:1000:1:root:/root:/bin/bash", "root:x:0:0:root:/root:/bin/bash"]


def test_the_guest_s_own_name_is_in_its_hosts_file() -> None:
    plan = DEBIAN_ROOT.having(more={"hosts": "192.0.2.7 nas"}).plan(run())
    text = next(file.content for file in plan.staged if file.path == "etc/hosts")
    assert (
        text == "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n192.0.2.7 nas\n127.0.1.1\tDroidDeck\n"
    )


def test_a_linux_host_without_a_resolver_leaves_the_guest_its_own() -> None:
    plan = DEBIAN_ROOT.having(more={"resolver": None}).plan(run())
    assert "/etc/resolv.conf" not in [bind.guest for bind in plan.binds]
    assert "etc/resolv.conf" in [file.path for file in ANDROID_APP.plan(run()).staged]


def test_every_bind_has_a_reason_and_an_origin_and_each_guest_path_is_there_once() -> None:
    for machine in (DEBIAN_ROOT, DEBIAN_USER, ANDROID_APP):
        plan = machine.plan(Request(kind="steam"))
        assert all(bind.reason and bind.origin for bind in plan.binds)
        assert len({bind.guest for bind in plan.binds}) == len(plan.binds)


def test_all_that_is_staged_is_bound_or_is_the_tracer_s() -> None:
    for machine in (DEBIAN_ROOT, DEBIAN_USER, ANDROID_APP):
        plan = machine.plan(Request(kind="steam"))
        shown = [bind.host.removeprefix("@session@/") for bind in plan.binds if bind.host.startswith("@session@/")]
        for file in plan.staged:
            assert file.path == "tracer" or any(
                f"{file.path}/".startswith(f"{path}/") or path.startswith(f"{file.path}/") for path in shown
            )
        paths = [file.path for file in plan.staged]
        assert len(paths) == len(set(paths))
        for path in paths:
            parent = path.rpartition("/")[0]
            assert not parent or paths.index(parent) < paths.index(path)


def test_a_backend_without_a_rootfs_takes_no_binds() -> None:
    direct = HOST.having(capabilities=TRACER.model_copy(update={"backend": "direct", "rootfs": False}))
    assert direct.plan(run()).binds == ()
    refused(direct, ("/a", "/mnt"), code="NO_ROOTFS", names="/a")


def test_a_relative_folder_of_the_environment_is_told_not_bound() -> None:
    machine = DEBIAN_USER.having(more={"runtime_dir": "run", "wayland_display": "wayland-0"})
    plan = machine.plan(run())
    assert [dropped.why for dropped in plan.dropped] == ["its path is not absolute"]
