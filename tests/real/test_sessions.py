# SPDX-License-Identifier: GPL-3.0-or-later
"""Session folders, two sessions on one guest, a read-only rootfs, and what must not be found anywhere afterwards."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest
from backend_trials import IN_A_MOUNT_NAMESPACE

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine

pytestmark = pytest.mark.real


def events(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def test_a_session_leaves_a_complete_folder(cli: CommandLine) -> None:
    cli("run", "--", "true")
    (folder,) = cli.sessions()
    assert folder.name.endswith("-01-true")
    assert {"plan.json", "session.log", "events.jsonl", ".complete"} <= {path.name for path in folder.iterdir()}
    told = events(folder)
    # Whether a short program is seen while it runs is a matter of time.
    names = [event["event"] for event in told if event["event"] not in {"guest.main_program", "session.ready"}]
    assert names == ["session.created", "guest.started", "guest.exited", "session.stopped"]
    assert {event["session"] for event in told} == {folder.name}


def test_the_log_tells_what_ran_by_names(cli: CommandLine, tmp_path: Path) -> None:
    # Case 66: an optional bind of the user's that is left out is one line.
    rows = cli.folders["config"] / "droiddeck-session"
    rows.mkdir()
    missing = f"{tmp_path}/not there"
    (rows / "binds.toml").write_text(f'[[bind]]\nhost = "{missing}"\nguest = "/mnt"\nreason = "test"\n')
    ended = cli("run", "--backend", "proot", "--env", "TOKEN=s3cret-value", "--", "sh", "-c", "exit 3")
    (folder,) = cli.sessions()
    lines = [json.loads(line) for line in (folder / "session.log").read_text().splitlines()]
    named = {line["event"]: line for line in lines}
    start = named["session starts"]
    assert (start["backend"], start["guest"], start["label"]) == ("proot", "demo", "sh")
    assert "TOKEN" in start["variables"]
    assert start["binds"] > 0
    assert [line["host"] for line in lines if line["event"] == "bind.left_out"] == [missing]
    warnings = [line["event"] for line in lines if line["level"] == "warning"]
    assert warnings
    assert all(f"droiddeck-session: {text}\n".encode() in ended.stderr for text in warnings)
    assert {"guest.started", "guest.exited"} <= named.keys()
    assert (named["session.failed"]["level"], named["session.failed"]["status"]) == ("error", 3)


def test_the_next_folder_has_the_next_number(cli: CommandLine) -> None:
    for _ in range(2):
        cli("run", "--", "true")
    assert [folder.name[11:13] for folder in cli.sessions()] == ["01", "02"]


def test_no_value_of_the_user_s_is_in_any_artefact(cli: CommandLine) -> None:
    cli("run", "--env", "TOKEN=s3cret-value", "--", "sh", "-c", "exit 0 # s3cret-argument")
    (folder,) = cli.sessions()
    for path in folder.rglob("*"):
        if path.is_file():
            assert b"s3cret" not in path.read_bytes(), path


def test_a_session_leaves_nothing_in_the_rootfs(cli: CommandLine, demo_root: Path) -> None:
    before = sorted(str(path) for path in demo_root.rglob("*"))
    cli("run", "--", "touch", "/tmp/x", "/run/droiddeck/y")
    assert sorted(str(path) for path in demo_root.rglob("*")) == before


def test_two_sessions_on_one_guest_do_not_meet(cli: CommandLine) -> None:
    argv = cli.argv("run", "--", "sh", "-c", "echo up > /tmp/mine; echo ready; read line; cat /tmp/mine")
    first, second = (
        subprocess.Popen(argv, env=cli.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)
    )
    for process in (first, second):
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    assert first.communicate(b"\n", timeout=40)[0] == b"up\n"
    assert second.poll() is None
    assert second.communicate(b"\n", timeout=40)[0] == b"up\n"
    assert (first.returncode, second.returncode) == (0, 0)
    assert len(cli.sessions()) == 2


@pytest.mark.parametrize("backend", ["bwrap", "chroot", "proot"])
def test_a_read_only_rootfs_works(cli: CommandLine, demo_root: Path, tmp_path: Path, backend: str) -> None:
    # In a mount namespace of its own, so that nobody else's rootfs turns read-only.
    at = tmp_path / "rootfs"
    at.mkdir()
    script = 'mount --bind "$1" "$2" && mount -o remount,bind,ro "$2" && shift 2 && exec "$@"'
    inner = cli.argv(
        "run", "--backend", backend, "--guest", str(at), "--", "sh", "-c", "touch /x; touch /tmp/y && echo ok"
    )
    argv = [*IN_A_MOUNT_NAMESPACE, "sh", "-c", script, "sh", str(demo_root), str(at), *inner]
    ended = subprocess.run(argv, env=cli.environ, capture_output=True, check=False, timeout=50)
    assert ended.stdout == b"ok\n", ended.stderr


def test_a_mount_point_that_a_read_only_rootfs_lacks_is_refused_by_name(
    cli: CommandLine, demo_root: Path, tmp_path: Path
) -> None:
    at, source = tmp_path / "rootfs", tmp_path / "source"
    at.mkdir()
    source.mkdir()
    script = 'mount --bind "$1" "$2" && mount -o remount,bind,ro "$2" && shift 2 && exec "$@"'
    inner = cli.argv("run", "--backend", "bwrap", "--guest", str(at), "--bind", f"{source}:/not/there", "--", "true")
    argv = [*IN_A_MOUNT_NAMESPACE, "sh", "-c", script, "sh", str(demo_root), str(at), *inner]
    ended = subprocess.run(argv, env=cli.environ, capture_output=True, check=False, timeout=50)
    assert ended.returncode == 125
    assert b"/not/there" in ended.stderr


@pytest.mark.parametrize("backend", ["bwrap", "chroot", "proot"])
def test_the_shell_form_pasted_does_the_same(cli: CommandLine, backend: str, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"odd 'name\xff")
    odd.mkdir()
    (odd / "x").write_text("through the bind\n")
    flags = ["--backend", backend, "--bind", f"{odd}:/mnt/odd", "--env", 'A=it\'s "b"\n', "--cwd", "/mnt/odd"]
    program = ["--", "sh", "-c", 'printf "%s" "$A"; pwd; cat x; exit 5']
    direct = cli("run", *flags, *program)
    line = cli("plan", "run", "--shell", *flags, *program)
    assert b"staged into" in line.stderr
    pasted = subprocess.run(["sh"], input=line.stdout, capture_output=True, check=False, timeout=40)
    assert (pasted.returncode, pasted.stdout) == (direct.returncode, direct.stdout) == (5, direct.stdout)
    assert pasted.stdout == b'it\'s "b"\n/mnt/odd\nthrough the bind\n'


def test_the_hostprocess_form_splits_into_the_host_command(cli: CommandLine) -> None:
    from droiddeck_session.plan.render import split_hostprocess  # noqa: PLC0415 - the one test that needs it

    text = cli("plan", "run", "--hostprocess", "--", "printf", "a b\\c").stdout.decode().removesuffix("\n")
    assert split_hostprocess(text)[-2:] == ["printf", "a b\\c"]
    ended = cli("plan", "run", "--hostprocess", "--", "printf", "")
    assert ended.returncode == 2
    assert b"empty argument" in ended.stderr


def test_interactive_shells_have_job_control(cli: CommandLine) -> None:
    # Case 62.
    command = shlex.join(cli.argv("run", "--", "bash", "-ic", "sleep 60 & jobs; kill %1; exit 6"))
    ended = subprocess.run(
        ["script", "-qec", command, "/dev/null"], env=cli.environ, capture_output=True, check=False, timeout=50
    )
    assert ended.returncode == 6
    assert b"job control" not in ended.stdout
    assert b"Running" in ended.stdout


def test_a_symlinked_source_is_bound_as_what_it_points_at(cli: CommandLine, tmp_path: Path) -> None:
    # Cases 67 and 69.
    games = tmp_path / "games"
    games.mkdir()
    (games / "x").write_text("here")
    (tmp_path / "link").symlink_to(games)
    ended = cli("run", "--bind", f"{tmp_path}/link:/mnt/g", "--", "cat", "/mnt/g/x")
    assert ended.stdout == b"here"


def test_no_terminal_fails_fast(cli: CommandLine) -> None:
    argv = ["setsid", "-w", *cli.argv("run", "--", "sh", "-c", "cat </dev/tty")]
    ended = subprocess.run(
        argv, env=cli.environ, capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=40
    )
    assert ended.returncode != 0
    assert b"/dev/tty" in ended.stderr
