# SPDX-License-Identifier: GPL-3.0-or-later
"""Who, where and under what name a session runs, and that planning looks at nothing but what it is given."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from plan_hosts import ANDROID_APP, DEBIAN_ROOT, DEBIAN_USER, ROOT, TRACER, Machine, run, table

from droiddeck_session.errors import PlanError
from droiddeck_session.plan.model import NOT_RECORDED, Identity, Plan
from droiddeck_session.plan.request import Request
from droiddeck_session.settings import GuestSettings, Settings

if TYPE_CHECKING:
    from pathlib import Path

AS_ROOT = Settings(guest=GuestSettings(identity="root"))
HOST = DEBIAN_ROOT.having(host={"/a": "directory", "/a/b": "directory", "/f": "file"})


def test_the_ids_are_the_caller_s() -> None:
    assert DEBIAN_USER.plan(run()).identity == Identity(uid=1000, gid=1000)
    assert DEBIAN_ROOT.plan(run(), settings=AS_ROOT).identity == Identity(uid=0, gid=0)


def test_root_is_emulated_where_the_backend_can_and_refused_where_not() -> None:
    machine = DEBIAN_ROOT.having(uid=1000, gid=1000)
    with pytest.raises(PlanError, match=r"guest\.identity") as refusal:
        machine.plan(run(), settings=AS_ROOT)
    assert refusal.value.code == "IDENTITY_NOT_POSSIBLE"
    plan = machine.having(capabilities=TRACER).plan(run(), settings=AS_ROOT)
    assert plan.identity == Identity(uid=0, gid=0, emulated=True)
    assert {"/etc/passwd", "/etc/group"}.isdisjoint(bind.guest for bind in plan.binds)


def test_user_and_home_are_the_guest_s_for_a_known_uid_and_root_s_for_another() -> None:
    for uid, user, home in ((0, "root", "/root"), (1, "daemon", "/usr/sbin"), (4711, "root", "/root")):
        values = {entry.name: entry.value for entry in DEBIAN_ROOT.having(uid=uid).plan(run()).environment}
        assert (values["USER"], values["HOME"]) == (user, home)


def test_the_folder_is_the_home_or_else_the_root() -> None:
    assert DEBIAN_ROOT.plan(run()).cwd == "/root"
    assert DEBIAN_ROOT.having(guest={"/root": "missing"}).plan(run()).cwd == "/"
    assert HOST.having(guest={"/root": "missing"}).plan(run(("/a", "/root"))).cwd == "/root"


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [
        ("/", "/"),
        ("/root/", "/root"),
        ("//mnt/./../root/", "/root"),
        ("/tmp", "/tmp"),
        ("/mnt", "/mnt"),
        ("/mnt/b", "/mnt/b"),
        ("/link", "/root"),
        ("/to-bind", "/mnt"),
        ("/run/droiddeck/x", "/run/droiddeck/x"),
    ],
)
def test_a_folder_that_is_there_is_taken_as_the_guest_knows_it(cwd: str, expected: str) -> None:
    # Case 48, a bind target among them.
    machine = HOST.having(guest_links={"/link": "/root", "/to-bind": "/mnt"})
    plan = machine.plan(run(("/a", "/mnt"), ("/a", "/run/droiddeck/x"), cwd=cwd))
    assert plan.cwd == expected


@pytest.mark.parametrize(
    "cwd", ["", "root", "./root", "/none", "/etc/passwd", "/mnt/none", "/file", "/tmp/none", "/a\0"]
)
def test_a_folder_that_is_not_there_is_refused_by_name(cwd: str) -> None:
    request = run(("/a", "/mnt"), ("/f", "/file"))
    with pytest.raises(PlanError) as refusal:
        HOST.plan(request.model_copy(update={"cwd": cwd}))
    assert refusal.value.code == "BAD_CWD"
    assert repr(cwd) in refusal.value.message


def test_without_a_rootfs_the_folder_is_the_host_s() -> None:
    direct = HOST.having(capabilities=TRACER.model_copy(update={"rootfs": False}))
    assert direct.plan(run(cwd="/a")).cwd == "/a"
    assert direct.plan(run()).cwd == "/"
    with pytest.raises(PlanError, match="/none"):
        direct.plan(run(cwd="/none"))


@pytest.mark.parametrize(
    ("program", "label"),
    [("true", "true"), ("/usr/bin/Python3.11", "Python3.11"), ("../", "run"), ("ü b\udcff", "ü b\udcff")],
)
def test_the_label_is_the_program_s_name(program: str, label: str) -> None:
    plan = DEBIAN_ROOT.plan(run(argv=(program,)))
    assert plan.label == label
    assert Plan.from_json(plan.to_json()) == plan
    assert DEBIAN_ROOT.plan(Request(kind="steam")).label == "steam"


def test_a_folder_that_is_no_rootfs_is_refused_by_name() -> None:
    with pytest.raises(PlanError, match="/usr/bin/env") as refusal:
        DEBIAN_ROOT.having(guest={"/usr/bin/env": "missing"}).plan(run())
    assert refusal.value.code == "NOT_A_GUEST"
    assert DEBIAN_ROOT.root in refusal.value.message


@pytest.mark.parametrize("machine", [DEBIAN_ROOT, DEBIAN_USER, ANDROID_APP])
def test_the_same_facts_make_the_same_plan(machine: Machine) -> None:
    assert machine.plan(run()) == machine.plan(run())


@pytest.mark.parametrize("machine", [DEBIAN_ROOT, DEBIAN_USER], ids=["stand-in", "client in gamescope"])
def test_a_url_is_no_part_of_the_record_of_a_plan(machine: Machine) -> None:
    plan = machine.plan(Request(kind="steam", url="steam://run/480//-password hunter2/"))
    kept = plan.without_values()
    assert "hunter2" in plan.to_json()
    assert "hunter2" not in kept.to_json()
    # All other words are there to explain a session by.
    assert [word for word in kept.argv if word not in plan.argv] == [NOT_RECORDED]
    assert len(kept.argv) == len(plan.argv)


def test_arguments_and_values_of_the_user_s_are_no_part_of_the_record_of_a_plan() -> None:
    settings = Settings(environment={"A": "hunter2"})
    tables = table('[[variable]]\nname="C"\nvalue="hunter2"\nreason="r"\n', name="environment.toml")
    request = run(argv=("sh", "hunter2", "--url"), variables=(("B", "hunter2"),))
    kept = DEBIAN_ROOT.plan(request, tables=tables, settings=settings).without_values()
    assert "hunter2" not in kept.to_json()
    assert kept.argv == ("sh", NOT_RECORDED, NOT_RECORDED)
    values = {entry.name: entry.value for entry in kept.environment}
    assert (values["A"], values["B"], values["C"], values["HOME"]) == (*[NOT_RECORDED] * 3, "/root")


PURE = sorted((ROOT / "droiddeck_session" / "plan").glob("*.py"))
IMPURE_MODULES = frozenset(
    {
        "os",
        "io",
        "sys",
        "time",
        "datetime",
        "pathlib",
        "subprocess",
        "random",
        "secrets",
        "socket",
        "tempfile",
        "shutil",
    }
    | {"glob", "platform", "getpass", "pwd", "grp", "uuid", "threading", "asyncio", "anyio", "psutil", "importlib"}
)
IMPURE_CALLS = frozenset(
    {"open", "print", "input", "exec", "eval", "__import__", "gather", "look_up", "read_layers", "uname"}
)


@pytest.mark.parametrize("path", PURE, ids=lambda path: path.name)
def test_planning_looks_at_nothing_by_itself(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not {alias.name.partition(".")[0] for alias in node.names} & IMPURE_MODULES
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").partition(".")[0] not in IMPURE_MODULES
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            assert name not in IMPURE_CALLS
