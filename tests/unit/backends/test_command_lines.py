# SPDX-License-Identifier: GPL-3.0-or-later
"""The command lines of the backends, argument by argument: pure, from a plan and capabilities."""

from __future__ import annotations

from pathlib import Path

import pytest
from backend_trials import BACKENDS, make_plan

from droiddeck_fastpath import backend as fastpath
from droiddeck_proot.options import known_options, version
from droiddeck_session.backends.interface import HOST_PATH
from droiddeck_session.errors import BackendError
from droiddeck_session.plan.capabilities import Capabilities
from droiddeck_session.plan.model import Bind, FastPath, Identity, Plan

PROOT = Capabilities(
    backend="proot",
    available=True,
    program="/x/proot",
    options=("0", "b", "i", "kernel-release", "kill-on-exit", "r", "w"),
    kernel_identity="full",
    nodename=True,
    change_identity=True,
)
BWRAP = Capabilities(
    backend="bwrap",
    available=True,
    program="/x/bwrap",
    nodename=True,
    change_identity=True,
    read_only_binds=True,
    colon_in_binds=True,
)
IDENTITY = "\\Linux\\DroidDeck\\6.12.1\\#1 SMP\\aarch64\\localdomain\\-1\\"


def a_bind(host: str, guest: str, *, read_only: bool = False) -> Bind:
    return Bind(host=host, guest=guest, reason="", origin="", read_only=read_only, directory=True)


def plan(tmp_path: Path, **changes: object) -> Plan:
    made = make_plan(Path("/g"), ["/bin/prog", "a b", ""], session=tmp_path, environment={"A": "1"}, cwd="/root")
    return made.model_copy(update={"identity": Identity(uid=10123, gid=10123), **changes})


TAIL = ("/usr/bin/env", "-i", "A=1", "/bin/prog", "a b", "")


def test_proots_arguments_stand_in_the_fixed_order(tmp_path: Path) -> None:
    binds = (a_bind("/dev", "/dev"), a_bind("/h/x", "/opt"), a_bind("/h/y", "/opt"))
    host = BACKENDS["proot"]().command(plan(tmp_path, binds=binds, kernel_release=IDENTITY), PROOT)
    assert host.argv == (
        "/x/proot", "--kill-on-exit", f"--kernel-release={IDENTITY}", "-i", "10123:10123", "-r", "/g", "-w", "/root",
        "-b", "/dev", "-b", "/h/x:/opt", "-b", "/h/y:/opt", *TAIL,
    )  # fmt: skip
    assert host.cwd == "/g"
    assert host.env == {"PATH": HOST_PATH, "PROOT_TMP_DIR": f"{tmp_path}/tracer"}


@pytest.mark.parametrize(
    ("identity", "options"),
    [
        (Identity(uid=0, gid=0, emulated=True), ("-0",)),
        (Identity(uid=0, gid=5, emulated=True), ("-i", "0:5")),
        (Identity(uid=7, gid=8, emulated=True), ("-i", "7:8")),
        (Identity(uid=7, gid=8), ("-i", "7:8")),
        (Identity(uid=0, gid=0), ()),
    ],
)
def test_the_identity_is_an_option_of_proots(tmp_path: Path, identity: Identity, options: tuple[str, ...]) -> None:
    argv = BACKENDS["proot"]().command(plan(tmp_path, identity=identity), PROOT).argv
    assert argv == ("/x/proot", "--kill-on-exit", *options, "-r", "/g", "-w", "/root", *TAIL)


def test_a_proot_that_sets_the_release_alone_gets_the_release_alone(tmp_path: Path) -> None:
    release = PROOT.model_copy(update={"kernel_identity": "release", "nodename": False})
    argv = BACKENDS["proot"]().command(plan(tmp_path, kernel_release=IDENTITY), release).argv
    assert "--kernel-release=6.12.1" in argv


def test_an_unknown_option_is_left_out(tmp_path: Path) -> None:
    bare = PROOT.model_copy(update={"options": ("b", "r", "w"), "change_identity": False})
    argv = BACKENDS["proot"]().command(plan(tmp_path), bare).argv
    assert argv == ("/x/proot", "-r", "/g", "-w", "/root", *TAIL)


def test_the_fast_path_key_is_passed_only_where_both_want_it(tmp_path: Path) -> None:
    wired = plan(tmp_path, fast_path=FastPath(enabled=True, key="0123"))
    fast = PROOT.model_copy(update={"fast_path": True})
    assert BACKENDS["proot"]().command(wired, fast).env["PROOT_FASTPATH"] == "0123"
    assert "PROOT_FASTPATH" not in BACKENDS["proot"]().command(wired, PROOT).env
    assert "PROOT_FASTPATH" not in BACKENDS["proot"]().command(plan(tmp_path), fast).env


def test_what_the_probe_found_necessary_is_in_the_environment(tmp_path: Path) -> None:
    needy = PROOT.model_copy(update={"host_environment": (("PROOT_LOADER", "/x/loader"), ("PROOT_NO_SECCOMP", "1"))})
    env = BACKENDS["proot"]().command(plan(tmp_path), needy).env
    assert (env["PROOT_LOADER"], env["PROOT_NO_SECCOMP"]) == ("/x/loader", "1")


def test_our_tracers_command_line_is_proots(tmp_path: Path) -> None:
    ours = PROOT.model_copy(
        update={
            "backend": "fastpath",
            "options": fastpath.OPTIONS,
            "host_environment": (("PROOT_LOADER", "/x/loader"),),
        }
    )
    binds = (a_bind("/dev", "/dev"), a_bind("/h/x", "/opt"))
    made = plan(tmp_path, binds=binds, kernel_release=IDENTITY)
    host = BACKENDS["fastpath"]().command(made, ours)
    assert host.argv == BACKENDS["proot"]().command(made, PROOT).argv
    assert host.env == {"PATH": HOST_PATH, "PROOT_TMP_DIR": f"{tmp_path}/tracer", "PROOT_LOADER": "/x/loader"}


def test_our_tracer_gets_the_fast_paths_key_only_where_it_is_on(tmp_path: Path) -> None:
    wired = plan(tmp_path, fast_path=FastPath(enabled=True, key="0123"))
    fast = PROOT.model_copy(update={"backend": "fastpath", "fast_path": True})
    assert BACKENDS["fastpath"]().command(wired, fast).env["PROOT_FASTPATH"] == "0123"
    assert "PROOT_FASTPATH" not in BACKENDS["fastpath"]().command(plan(tmp_path), fast).env


def test_bwraps_arguments(tmp_path: Path) -> None:
    binds = (a_bind("/dev", "/dev"), a_bind("/h/x", "/opt", read_only=True))
    host = BACKENDS["bwrap"]().command(plan(tmp_path, binds=binds, nodename="deck"), BWRAP)
    assert host.argv == (
        "/x/bwrap", "--bind", "/g", "/", "--dev-bind", "/dev", "/dev", "--ro-bind", "/h/x", "/opt",
        "--unshare-uts", "--hostname", "deck", "--chdir", "/root", "--", *TAIL,
    )  # fmt: skip
    assert (host.cwd, host.env) == ("/g", {"PATH": HOST_PATH})


def test_bwrap_has_a_user_namespace_for_other_ids(tmp_path: Path) -> None:
    host = BACKENDS["bwrap"]().command(plan(tmp_path, identity=Identity(uid=0, gid=1, emulated=True)), BWRAP)
    assert host.argv[4:9] == ("--unshare-user", "--uid", "0", "--gid", "1")


def test_more_binds_than_bwrap_takes_arguments_are_refused(tmp_path: Path) -> None:
    binds = tuple(a_bind(f"/h/{number}", f"/g/{number}") for number in range(3000))
    with pytest.raises(BackendError, match="3000 binds") as refusal:
        BACKENDS["bwrap"]().command(plan(tmp_path, binds=binds), BWRAP)
    assert refusal.value.code == "TOO_MANY_BINDS"
    assert len(BACKENDS["bwrap"]().command(plan(tmp_path, binds=binds[:2900]), BWRAP).argv) > 8700


def test_chroots_arguments_after_the_interpreter(tmp_path: Path) -> None:
    chroot = BWRAP.model_copy(update={"backend": "chroot", "program": "/x/enter.py"})
    binds = (a_bind("/dev", "/dev"), a_bind("/h/x", "/opt", read_only=True))
    changes = {"binds": binds, "nodename": "deck", "identity": Identity(uid=0, gid=1, emulated=True)}
    host = BACKENDS["chroot"]().command(plan(tmp_path, **changes), chroot)
    assert host.argv[1:] == (
        "-I", "-S", "/x/enter.py", "--root", "/g", "--bind", "/dev", "/dev", "--ro-bind", "/h/x", "/opt",
        "--hostname", "deck", "--uid", "0", "--gid", "1", "--cwd", "/root", "--", *TAIL,
    )  # fmt: skip


def test_the_direct_backend_is_the_command_line_itself(tmp_path: Path) -> None:
    direct = Capabilities(backend="direct", available=True, rootfs=False)
    host = BACKENDS["direct"]().command(plan(tmp_path), direct)
    assert (host.argv, host.cwd, host.env) == (TAIL, "/root", {"PATH": HOST_PATH})


@pytest.mark.parametrize("name", ["bwrap", "chroot", "fastpath", "proot"])
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"binds": (a_bind("/h", "/opt", read_only=True),)}, "/h at /opt"),
        ({"binds": (a_bind("/h:h", "/opt"),)}, "/h:h"),
        ({"binds": (a_bind("/h", "/o:pt"),)}, "/o:pt"),
        ({"nodename": "deck"}, "host name deck"),
        ({"identity": Identity(uid=7, gid=8, emulated=True)}, "7:8"),
        ({"kernel_release": IDENTITY}, "kernel's identity"),
    ],
)
def test_what_the_probe_did_not_show_is_refused_by_name(
    tmp_path: Path, name: str, change: dict[str, object], named: str
) -> None:
    off = Capabilities(backend=name, available=True, program="/x/program")
    with pytest.raises(BackendError) as refusal:
        BACKENDS[name]().command(plan(tmp_path, **change), off)
    assert refusal.value.code == "BACKEND_CANNOT"
    assert named in refusal.value.message
    assert name in refusal.value.message
    assert refusal.value.hint


def test_the_options_of_a_help_text_are_learned_and_prose_is_not() -> None:
    text = (
        "proot 5.4.0: chroot without privilege.\n\nUsage:\n  proot [option] ... [command]\n\n"
        "  -b *path*, --bind=*path*, -m *path*\n\tMake it visible; see the -z option, --not-this.\n"
        "  --kill-on-exit\n\tKill.\n  -0, --root-id\n  -k *string*, --kernel-release=*string*\n"
    )
    assert known_options(text) == ("0", "b", "bind", "k", "kernel-release", "kill-on-exit", "m", "root-id")
    assert version(text) == "5.4.0"
    assert (known_options(""), version("")) == ((), "")
