# SPDX-License-Identifier: GPL-3.0-or-later
"""What every backend must do for a plan, on a real Debian guest: as the caller, and as a user without rights."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from backend_stage import ALL, ROOTED, Stage, on
from backend_trials import BACKENDS, bind, make_plan, run

from droiddeck_session.errors import BackendError
from droiddeck_session.plan.capabilities import Capabilities
from droiddeck_session.plan.model import Identity

pytestmark = pytest.mark.real


@on(ALL)
@pytest.mark.parametrize("status", [0, 3, 125, 126, 127])
def test_the_exit_status_is_the_programs(stage: Stage, status: int) -> None:
    assert stage.run("/bin/sh", "-c", f"exit {status}").returncode == status


@on(ALL)
@pytest.mark.parametrize("number", [15, 9, 6, 11])
def test_death_by_a_signal_is_told_or_named_as_a_thing_it_cannot(stage: Stage, number: int) -> None:
    status = stage.run("/bin/sh", "-c", f"kill -{number} $$").returncode
    if stage.capabilities.signal_status:
        assert status in (-number, 128 + number)
    else:
        assert stage.backend.name == "proot"
        assert status == 255


@on(ALL)
def test_a_program_that_is_not_there_gives_127_and_one_that_cannot_run_126(stage: Stage) -> None:
    assert stage.run("/nowhere/program").returncode == 127
    assert stage.run("/etc").returncode == 126
    assert stage.run("/etc/passwd").returncode == 126


@on(ALL)
def test_the_status_is_the_main_programs_though_a_child_ends_later(stage: Stage) -> None:
    # The child ends after its parent for certain: it waits until it is somebody else's.
    late = "import os, sys, time\nwhile os.getppid() == int(sys.argv[1]): time.sleep(0.01)\nos._exit(7)"
    script = f'/usr/bin/python3 -c "{late}" $$ >/dev/null 2>&1 & exit 3'
    status = stage.run("/bin/sh", "-c", script).returncode
    assert status == (3 if stage.capabilities.main_status else 7)
    assert stage.capabilities.main_status or stage.backend.name == "proot"


@on(ALL)
def test_the_environment_is_exactly_the_plans(stage: Stage) -> None:
    wanted = {"PATH": "/usr/bin:/bin", "EMPTY": "", "AWKWARD": "a = 'b' \\\n\"\udcff$HOME", "LANG": "C.UTF-8"}
    entries = stage.output("/usr/bin/env", "-0", environment=wanted).split("\0")
    assert entries == [*(f"{name}={value}" for name, value in wanted.items()), ""]


@on(ALL)
def test_arguments_arrive_byte_for_byte(stage: Stage) -> None:
    words = ["", "a  b", "back\\slash\\", "new\nline", "quo\"te'", "\udcff\udcfe", "$HOME;*?", "-x"]
    assert stage.output("/usr/bin/printf", "%s\\0", *words).split("\0") == [*words, ""]


@on(ALL)
def test_standard_input_is_the_programs(stage: Stage) -> None:
    done = run(stage.backend, stage.capabilities, stage.plan("/bin/cat"), stage.person, stdin=b"one\ntwo\0\xff")
    assert done.stdout == b"one\ntwo\0\xff"


@on(ALL)
def test_the_working_directory_is_the_plans(stage: Stage) -> None:
    assert stage.output("/bin/pwd", cwd="/usr/share") == "/usr/share\n"


@on(ROOTED)
def test_the_working_directory_may_be_a_bind(stage: Stage) -> None:
    binds = [bind(stage.folder("work", "file"), "/mnt")]
    assert stage.output("/bin/sh", "-c", "pwd; cat file", cwd="/mnt", binds=binds) == "/mnt\nwork/file"


@on(ROOTED)
def test_a_working_directory_that_is_not_there_is_an_error_or_named(stage: Stage) -> None:
    done = stage.run("/bin/pwd", cwd="/not/there")
    if stage.backend.name == "proot":
        assert b"/not/there" in done.stderr  # it warns and starts in /; the plan checks the folder before
    else:
        assert done.returncode != 0
        assert b"/not/there" in done.stderr


@on(ROOTED)
def test_the_ids_are_the_callers(stage: Stage) -> None:
    ids = stage.output("/bin/sh", "-c", "id -u; id -g")
    assert ids.split() == [str(stage.person.uid), str(stage.person.gid)]


@on(ROOTED)
@pytest.mark.parametrize("uid", [0, 4242])
def test_other_ids_are_shown_and_own_files_belong_to_them(stage: Stage, uid: int) -> None:
    binds = [bind(stage.folder("own", "file"), "/mnt")]
    script = "id -u; id -g; /usr/bin/python3 -c 'import os; print(os.stat(\"/mnt/file\").st_uid)'"
    other = Identity(uid=uid, gid=uid, emulated=True)
    assert stage.output("/bin/sh", "-c", script, binds=binds, identity=other).split() == [str(uid)] * 3


@on(ROOTED)
def test_the_host_name_is_the_plans(stage: Stage) -> None:
    host = os.uname()
    release = "".join(f"\\{field}" for field in (
        host.sysname, "DroidDeck", host.release, host.version, host.machine, "localdomain", "-1",
    )) + "\\"  # fmt: skip
    whole = stage.capabilities.kernel_identity == "full"
    names = {"nodename": "DroidDeck", "kernel_release": release if whole else None}
    assert stage.output("/bin/uname", "-n", **names) == "DroidDeck\n"
    assert (
        stage.output("/bin/uname", "-srvm", **names).split()
        == f"{host.sysname} {host.release} {host.version} {host.machine}".split()
    )
    assert os.uname().nodename == host.nodename


@on(ROOTED)
def test_a_kernel_identity_that_it_cannot_set_is_refused(stage: Stage) -> None:
    if stage.capabilities.kernel_identity != "none":
        stage = Stage(
            stage.backend,
            stage.capabilities.model_copy(update={"kernel_identity": "none"}),
            stage.person,
            stage.root,
            stage.session,
        )
    with pytest.raises(BackendError, match="kernel's identity"):
        stage.run("/bin/true", kernel_release="6.1")


@on(ROOTED)
def test_a_read_only_rootfs_stays_as_it_is(stage: Stage) -> None:
    plan = stage.plan("/bin/sh", "-c", "cat /etc/debian_version && ! touch /srv/made")
    read_only = plan.model_copy(update={"guest": plan.guest.model_copy(update={"read_only": True})})
    done = run(stage.backend, stage.capabilities, read_only, stage.person)
    made = stage.root / "srv/made"
    if stage.backend.name in {"fastpath", "proot"}:
        # A tracer adds no protection: the rootfs of such a plan is one that the kernel itself keeps from being written.
        made.unlink(missing_ok=True)
    else:
        assert done.returncode == 0, done.stderr
        assert not made.exists()
    assert done.stdout == (stage.root / "etc/debian_version").read_bytes()


@on(ROOTED)
def test_host_only_files_are_not_there_and_a_link_of_the_guest_stays_in_it(stage: Stage) -> None:
    secret = stage.session / "secret"
    secret.write_text("of the host")
    folder = stage.folder("links")
    (folder / "out").symlink_to(secret)
    binds = [bind(folder, "/mnt")]
    script = 'for f in "$@"; do cat "$f" 2>/dev/null && echo "escaped by $f"; done; true'
    assert stage.output("/bin/sh", "-c", script, "sh", str(secret), "/mnt/out", binds=binds) == ""


@on(ROOTED)
def test_nothing_is_left_on_the_host(stage: Stage) -> None:
    folder = stage.folder("gone", "file")
    before = Path("/proc/self/mountinfo").read_text()
    entries = sorted(path.name for path in stage.root.iterdir())
    binds = [bind(folder, "/mnt"), bind("/proc", "/proc"), bind("/dev", "/dev"), bind("/sys", "/sys")]
    # A shared mount on the host is what a mount could come back through.
    stage.output("/bin/sh", "-c", "cat /proc/self/mountinfo >/dev/null", binds=binds)
    assert Path("/proc/self/mountinfo").read_text() == before
    assert sorted(path.name for path in stage.root.iterdir()) == entries


@on([("direct", "caller")])
def test_the_direct_backend_refuses_binds(stage: Stage) -> None:
    with pytest.raises(BackendError, match="bind /usr"):
        stage.run("/bin/true", binds=[bind("/usr", "/mnt")])


@on([("direct", "caller"), ("chroot", "caller")])
def test_the_host_programs_environment_has_nothing_of_the_callers(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD_TEST", "secret")
    host = stage.backend.command(stage.plan("/bin/true"), stage.capabilities)
    assert set(host.env) == {"PATH"}


@on(ROOTED)
def test_what_each_backend_can_do_here_is_what_is_documented(stage: Stage) -> None:
    found = stage.capabilities
    if stage.backend.name == "proot":
        return  # whichever proot is installed; test_backend_proot.py
    assert found.confines
    assert found.leaks == ()
    assert (found.nodename, found.change_identity) == (True, True)
    assert (found.main_status, found.signal_status) == (True, True)
    if stage.backend.name == "fastpath":
        assert (found.read_only_binds, found.colon_in_binds) == (False, False)
        assert (found.traces, found.stays_parent, found.makes_mount_points) == (True, True, True)
        assert (found.tree_ends_with_main, found.forwards_signals) == (True, True)
        assert found.kernel_identity == "full"
        return
    assert (found.read_only_binds, found.colon_in_binds) == (True, True)
    assert not found.traces
    assert not found.makes_mount_points
    assert shutil.which("bwrap") == found.program or stage.backend.name == "chroot"


def test_python_is_named_by_its_own_path_in_the_chroot_command(tmp_path: Path) -> None:
    capabilities = Capabilities(backend="chroot", available=True, program="/x/chroot_enter.py")
    plan = make_plan(Path("/"), ["/bin/true"], session=tmp_path)
    assert BACKENDS["chroot"]().command(plan, capabilities).argv[:4] == (
        sys.executable,
        "-I",
        "-S",
        "/x/chroot_enter.py",
    )
