# SPDX-License-Identifier: GPL-3.0-or-later
"""`run` on a real guest with each real backend: what the program sees, and how its end is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from supervised import kernel_tells_endings, until

if TYPE_CHECKING:
    from conftest import CommandLine

pytestmark = pytest.mark.real

BACKENDS = ("bwrap", "chroot", "proot")


def capabilities(cli: CommandLine, backend: str) -> dict[str, Any]:
    answer = json.loads(cli("plan", "run", "--json", "--backend", backend, "--", "true").stdout)
    found: dict[str, Any] = answer["capabilities"]
    return found


def told(folder: Path) -> list[dict[str, Any]]:
    """Return a session's events so far."""
    file = folder / "events.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def exited(cli: CommandLine) -> dict[str, Any]:
    """Return the event that tells how the last session's program ended."""
    return next(event for event in told(cli.sessions()[-1]) if event["event"] == "guest.exited")


def members(plan: dict[str, Any]) -> list[str]:
    """Return the processes that carry a session's token."""
    token = next(entry["value"] for entry in plan["environment"] if entry["name"] == "DROIDDECK_SESSION").encode()
    assert len(token) == 32
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if token in environ.read_bytes():
                found.append(environ.parent.name)
        except OSError:
            continue
    return found


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_what_the_program_prints_is_all_that_is_on_stdout(cli: CommandLine, backend: str) -> None:
    ended = cli("run", "--backend", backend, "--", "cat", stdin=b"a\0b\xff\n")
    assert (ended.returncode, ended.stdout) == (0, b"a\0b\xff\n")


def test_the_guest_is_the_debian_of_the_rootfs(cli: CommandLine, backend: str, demo_root: Path) -> None:
    shown = cli("run", "--backend", backend, "--", "cat", "/etc/debian_version").stdout
    assert shown == (demo_root / "etc/debian_version").read_bytes()


def test_uid_and_hostname(cli: CommandLine, backend: str) -> None:
    assert cli("run", "--backend", backend, "--", "id", "-u").stdout == f"{os.geteuid()}\n".encode()
    assert cli("run", "--backend", backend, "--", "uname", "-n").stdout == b"DroidDeck\n"
    assert cli("run", "--backend", backend, "--hostname", "deck-7", "--", "uname", "-n").stdout == b"deck-7\n"


def test_the_environment_is_exactly_the_plan_s(cli: CommandLine, backend: str) -> None:
    secret = {"LD_PRELOAD": "", "LD_LIBRARY_PATH": "/host/only", "HOST_ONLY": "1"}
    ended = cli("run", "--backend", backend, "--env", "A=b c", "--env", "E=", "--", "env", "-0", env=secret)
    seen = dict(item.split(b"=", 1) for item in ended.stdout.split(b"\0") if item)
    plan = json.loads(
        cli("plan", "run", "--json", "--backend", backend, "--env", "A=b c", "--env", "E=", "--", "env").stdout
    )
    wanted = {entry["name"].encode(): entry["value"].encode() for entry in plan["plan"]["environment"]}
    token = seen.pop(b"DROIDDECK_SESSION")
    wanted.pop(b"DROIDDECK_SESSION")
    assert len(token) == 32
    assert seen == wanted
    assert (seen[b"A"], seen[b"E"]) == (b"b c", b"")


def test_every_bind_is_the_host_s_inode(cli: CommandLine, backend: str, tmp_path: Path) -> None:
    folder, file = tmp_path / "a folder", tmp_path / "a\nfile"
    folder.mkdir()
    file.write_text("text")
    binds = ["--bind", f"{folder}:/mnt/one two", "--bind", f"{file}:/mnt/one two/../three"]
    plan = json.loads(cli("plan", "run", "--json", "--backend", backend, *binds, "--", "true").stdout)["plan"]
    guests = [bind["guest"] for bind in plan["binds"] if not bind["host"].startswith("@session@")]
    # Python's os.stat is newfstatat, which a stock proot translates; coreutils' stat is statx, which it leaks.
    code = "import os, sys\nfor path in sys.argv[1:]: print(os.stat(path).st_dev, os.stat(path).st_ino, sep=':')"
    ended = cli("run", "--backend", backend, *binds, "--", "python3", "-c", code, *guests)
    assert ended.returncode == 0, ended.stderr
    facts = [Path(bind["host"]).stat() for bind in plan["binds"] if not bind["host"].startswith("@session@")]
    assert ended.stdout.decode().split() == [f"{fact.st_dev}:{fact.st_ino}" for fact in facts]
    assert {"/mnt/one two", "/mnt/three"} <= set(guests)


def test_the_working_directory_is_the_wanted_one(cli: CommandLine, backend: str, tmp_path: Path) -> None:
    # Case 48: also when it names a bind, and when the caller stands in the bound folder.
    bind = ["--bind", f"{tmp_path}:/test"]
    ended = cli("run", "--backend", backend, *bind, "--cwd", "/test", "--", "sh", "-c", "pwd -P", cwd=tmp_path)
    assert ended.stdout == b"/test\n"


@pytest.mark.parametrize(
    ("program", "status"),
    [
        (("true",), 0),
        (("sh", "-c", "exit 3"), 3),
        (("/etc/passwd",), 126),
        (("no-such-program",), 127),
    ],
)
def test_exit_status(cli: CommandLine, backend: str, program: tuple[str, ...], status: int) -> None:
    assert cli("run", "--backend", backend, "--", *program).returncode == status


def by_signal(cli: CommandLine, backend: str, signum: signal.Signals) -> int:
    """Run a program that a signal ends once the session watches it, and return our status."""
    argv = cli.argv("run", "--backend", backend, "--", "sh", "-c", f"read go; kill -{int(signum)} $$")
    before = len(cli.sessions())
    with subprocess.Popen(argv, env=cli.environ, stdin=subprocess.PIPE) as process:
        watched = "guest.started" if backend == "chroot" else "guest.main_program"
        until(
            lambda: watched in [event["event"] for folder in cli.sessions()[before:] for event in told(folder)], watched
        )
        process.communicate(b"go\n", timeout=40)
    return process.returncode


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL, signal.SIGABRT])
def test_death_by_a_signal_is_told_apart_from_a_status(cli: CommandLine, backend: str, signum: signal.Signals) -> None:
    # Case 4. Where the kernel records how a process ended (Linux 6.15), the session knows better than its wrapper.
    # Elsewhere bwrap makes 128+n of it, and stock proot 255, a named capability.
    status = 128 + signum
    if kernel_tells_endings() or backend == "chroot":
        expected: tuple[int, str | None] = (status, signum.name)
    else:
        expected = (status if capabilities(cli, backend)["signal_status"] else 255, None)
    assert (by_signal(cli, backend, signum), exited(cli)["signal"]) == expected
    by_status = cli("run", "--backend", backend, "--", "sh", "-c", f"exit {status}").returncode
    assert (by_status, exited(cli)["signal"]) == (status, None)


def test_an_own_failure_is_125(cli: CommandLine, backend: str) -> None:
    ended = cli("run", "--backend", backend, "--cwd", "/no/such/place", "--", "true")
    assert ended.returncode == 125
    assert b"/no/such/place" in ended.stderr


def test_a_background_process_does_not_keep_the_session(cli: CommandLine, backend: str) -> None:
    # Cases 1 and 6: the pipe is held open, the sleeper is in a session of its own; the answer is the main program's.
    ended = cli("run", "--backend", backend, "--", "sh", "-c", "setsid sleep 600 & sleep 600 & exit 0", time_limit=40)
    assert ended.returncode in {0, *([] if capabilities(cli, backend)["main_status"] else [125])}
    assert not members(json.loads((cli.sessions()[-1] / "plan.json").read_text()))


def test_the_status_is_the_main_program_s_not_the_last_one_s(cli: CommandLine, backend: str) -> None:
    # Case 5. Where the tracer tells another's status and the kernel none, the session says so instead of guessing.
    ended = cli("run", "--backend", backend, "--", "sh", "-c", "(trap '' TERM; sleep 0.5; exit 7) & exit 3")
    assert ended.returncode in {3, *([] if capabilities(cli, backend)["main_status"] else [125])}


def test_sigchld_ignored_by_the_caller_changes_nothing(cli: CommandLine) -> None:
    # Case 3.
    code = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])"
    argv = cli.argv("run", "--", "sh", "-c", "exit 4")
    ended = subprocess.run([argv[0], "-c", code, *argv], env=cli.environ, check=False, timeout=40)
    assert ended.returncode == 4


def test_a_stock_proot_gets_no_option_that_it_does_not_know(cli: CommandLine) -> None:
    # Case 7.
    plan = json.loads(cli("plan", "run", "--json", "--backend", "proot", "--", "true").stdout)
    known = set(plan["capabilities"]["options"])
    given = {word[2:].split("=")[0] for word in plan["command"]["argv"] if word.startswith("--")}
    assert given <= known


def test_arguments_arrive_as_they_are(cli: CommandLine, backend: str) -> None:
    words = ["", " ", "a b", "back\\slash", "new\nline", "co:lon", "pi|pe", "quo'te\"", "-x", "--", "\udcff", "ü"]
    ended = cli("run", "--backend", backend, "--", "printf", "%s\\0", *words)
    assert ended.stdout == b"".join(word.encode(errors="surrogateescape") + b"\0" for word in words)


def test_glibc_tunables_are_merged(cli: CommandLine) -> None:
    # Case 112: the user's keys win, ours stay.
    ended = cli("run", "--env", "GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.pthread.rseq=1", "--", "env")
    line = next(line for line in ended.stdout.decode().splitlines() if line.startswith("GLIBC_TUNABLES="))
    merged = dict(item.split("=") for item in line.partition("=")[2].split(":"))
    assert (merged["glibc.malloc.arena_max"], merged["glibc.pthread.rseq"]) == ("1", "1")
    assert "glibc.malloc.top_pad" in merged
