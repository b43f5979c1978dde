# SPDX-License-Identifier: GPL-3.0-or-later
"""Session folders: names and numbers, one ending each, what a crash leaves, what is kept."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from supervised import PATH, state_of, until

from droiddeck_session.errors import FilesError, PlanError
from droiddeck_session.paths import Directories, directories
from droiddeck_session.session import folder as folder_module
from droiddeck_session.session import sweep
from droiddeck_session.session.folder import SessionFolder, slug
from droiddeck_session.session.membership import Identity, Membership, ProcessStat, children, read_stat
from droiddeck_session.session.recovery import COMPLETE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path) -> Directories:
    return directories({"XDG_STATE_HOME": str(tmp_path / "state of: mine")})


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def run_one(here: Directories, label: str = "true", keep: int = 30) -> Path:
    with SessionFolder.create(here, label, keep) as folder:
        folder.stopped(status=0)
    return folder.path


@given(st.text())
def test_a_slug_is_a_safe_part_of_a_name(label: str) -> None:
    made = slug(label)
    assert 1 <= len(made) <= 24
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert not made.startswith("-")
    assert slug(made) == made


@pytest.mark.parametrize(
    ("label", "expected"),
    [("steam", "steam"), ("My Game: 2.exe", "my-game-2-exe"), ("…", "session"), ("a" * 30, "a" * 24)],
)
def test_a_slug_reads_like_its_label(label: str, expected: str) -> None:
    assert slug(label) == expected


def test_a_folder_is_private_and_numbered_within_its_day(here: Directories) -> None:
    one, two = run_one(here), run_one(here, "steam")
    assert one.name[10:] == "-01-true"
    assert two.name[10:] == "-02-steam"
    assert stat.S_IMODE(one.stat().st_mode) == 0o700


def test_the_number_is_the_highest_and_one_not_a_count(here: Directories) -> None:
    names = [run_one(here, keep=2).name for _ in range(4)]
    assert [name[11:13] for name in names] == ["01", "02", "03", "04"]
    day = names[0][:10]
    (here.sessions / f"{day}-120-other").mkdir()
    assert run_one(here).name == f"{day}-121-true"


def test_only_the_newest_complete_folders_stay_and_no_living_one_goes(here: Directories) -> None:
    with SessionFolder.create(here, "living", 2) as living:
        for _ in range(4):
            run_one(here, keep=2)
        left = sorted(path.name[11:] for path in here.sessions.glob("2*"))
        assert left == ["01-living", "03-true", "04-true", "05-true"]
        assert not (living.path / COMPLETE).exists()


def test_there_is_exactly_one_ending(here: Directories) -> None:
    with SessionFolder.create(here, "x", 5) as folder:
        folder.failed("GUEST_EXIT", "exit status 3")
        folder.stopped(status=0)
    assert [event["event"] for event in events(folder.path)] == ["session.created", "session.failed"]
    assert (folder.path / COMPLETE).read_text().startswith("collected: session.failed at ")


def test_an_error_before_the_start_is_the_ending(here: Directories) -> None:
    with pytest.raises(PlanError), SessionFolder.create(here, "x", 5) as folder:
        raise PlanError(code="NO_SUCH_BIND", message="it is not there")
    assert events(folder.path)[-1]["code"] == "NO_SUCH_BIND"
    with pytest.raises(ZeroDivisionError), SessionFolder.create(here, "x", 5) as folder:
        raise ZeroDivisionError
    assert events(folder.path)[-1] | {"t": 0} == {
        "t": 0, "event": "session.failed", "session": folder.id, "code": "ABANDONED",
        "message": "given up by ZeroDivisionError", "survivors": [],
    }  # fmt: skip


@pytest.mark.parametrize(("request_to_end", "status"), [(KeyboardInterrupt(), 130), (SystemExit(143), 143)])
def test_a_request_to_end_before_the_start_is_no_failure(
    here: Directories, request_to_end: BaseException, status: int
) -> None:
    with pytest.raises(type(request_to_end)), SessionFolder.create(here, "x", 5) as folder:
        raise request_to_end
    last = events(folder.path)[-1]
    assert (last["event"], last["status"]) == ("session.stopped", status)
    assert (folder.path / COMPLETE).exists()


def test_a_folder_whose_processes_could_not_be_ended_is_left_to_the_next_start(here: Directories) -> None:
    with SessionFolder.create(here, "x", 5) as folder:
        (folder.path / "tmp").mkdir()
        folder.failed("SURVIVORS", "still there", survivors=("cat (1)",))
    assert (folder.path / "tmp").exists()
    assert not (folder.path / COMPLETE).exists()
    with SessionFolder.create(here, "x", 5) as following:
        assert [one.session for one in following.recovered] == [folder.id]
    assert not (folder.path / "tmp").exists()
    assert (folder.path / COMPLETE).exists()
    assert [event["event"] for event in events(folder.path)] == [
        "session.created", "session.failed", "session.recovered",
    ]  # fmt: skip


def test_recovery_keeps_the_files_of_processes_that_it_cannot_end(
    here: Directories, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(membership: Membership) -> list[ProcessStat]:
        return membership.living()

    monkeypatch.setattr(sweep, "kill", fail)
    told: list[str] = []
    with subprocess.Popen(["sleep", "600"]) as program:
        own = read_stat(program.pid)
        assert own is not None
        crash(here, "no such token", own.identity)
        with SessionFolder.create(here, "x", 5, tell=told.append):
            pass
        program.kill()
    assert told == [f"session 2001-02-03-04-crashed had lost its supervisor; still there: sleep ({program.pid})"]
    assert (here.sessions / "2001-02-03-04-crashed/tmp").exists()
    assert not (here.sessions / "2001-02-03-04-crashed" / COMPLETE).exists()


def test_recovery_ends_a_noted_process_and_its_children_and_no_later_one_of_that_pid(here: Directories) -> None:
    programs = [subprocess.Popen(["sh", "-c", "sleep 600 & wait"], env={"PATH": PATH}) for _ in range(2)]
    until(lambda: all(children(program.pid) for program in programs), "their children")
    noted, other = (read_stat(program.pid) for program in programs)
    assert noted is not None
    assert other is not None
    below = [children(program.pid)[0] for program in programs]
    crash(here, "no such token", noted.identity, Identity(other.pid, other.identity.start - 1))
    told: list[str] = []
    with SessionFolder.create(here, "x", 5, tell=told.append):
        pass
    assert programs[0].wait(30) == -signal.SIGKILL
    assert state_of(below[0]) in {"", "Z"}
    assert f"sh ({noted.pid})" in told[0]
    assert f"sleep ({below[0]})" in told[0]
    assert programs[1].poll() is None
    for pid in (below[1], other.pid):
        os.kill(pid, signal.SIGKILL)
    programs[1].wait()


def crash(here: Directories, token: str, *processes: Identity) -> None:
    """Leave a folder as a supervisor does that was killed."""
    with SessionFolder.create(here, "x", 5) as folder:
        folder.note(token, processes)
        (folder.path / "tmp").mkdir()
        note = (folder.path / "lock").read_bytes()
        crashed = here.sessions / "2001-02-03-04-crashed"
        shutil.copytree(folder.path, crashed)
        (crashed / "lock").write_bytes(note)


def test_what_only_the_running_session_needs_is_gone_afterwards(here: Directories) -> None:
    with SessionFolder.create(here, "x", 5) as folder:
        for name in ("tmp", "run", "etc"):
            (folder.path / name).mkdir()
            (folder.path / name / "file").touch()
        folder.write("plan.json", "{}")
    assert sorted(path.name for path in folder.path.iterdir()) == [
        COMPLETE, "etc", "events.jsonl", "lock", "plan.json", "session.log",
    ]  # fmt: skip


def test_the_next_start_finishes_what_a_crash_left(here: Directories) -> None:
    folder = here.sessions / "2001-02-03-04-crashed"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text('{"t": 5, "event": "session.created", "session": "x"}\n{"t": 6, "eve')
    (folder / "tmp").mkdir()
    with SessionFolder.create(here, "x", 5) as following:
        assert [one.session for one in following.recovered] == [folder.name]
        assert (folder / COMPLETE).exists()
        assert not (folder / "tmp").exists()
    assert [event["event"] for event in events(folder)] == ["session.created", "session.recovered", "session.failed"]
    assert {"event": "session.recovered", "of": folder.name}.items() <= events(following.path)[1].items()
    with SessionFolder.create(here, "x", 5) as third:
        assert third.recovered == ()


def test_a_note_that_is_no_note_does_no_harm(here: Directories) -> None:
    for number, text in enumerate([b"", b"\xff\xfe", b"[]", b'{"boot": 3}', b"{" * 5000]):
        folder = here.sessions / f"2001-02-03-0{number}-crashed"
        folder.mkdir(parents=True)
        (folder / "lock").write_bytes(text)
    with SessionFolder.create(here, "x", 9) as following:
        assert len(following.recovered) == 5


def test_a_session_that_lives_is_not_taken_for_a_crash(here: Directories) -> None:
    with SessionFolder.create(here, "one", 5) as one, SessionFolder.create(here, "two", 5) as two:
        assert two.recovered == ()
        assert not (one.path / COMPLETE).exists()


def test_a_state_directory_that_cannot_be_written_is_named_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(FilesError, match="Not a directory") as refusal:
        SessionFolder.create(directories({"XDG_STATE_HOME": str(tmp_path / "state")}), "x", 5).__enter__()
    assert refusal.value.code == "STATE_NOT_WRITABLE"
    assert str(tmp_path / "state") in refusal.value.message
    assert "XDG_STATE_HOME" in refusal.value.hint


def test_a_file_of_the_folder_that_cannot_be_written_is_an_error_with_a_fix(here: Directories) -> None:
    with SessionFolder.create(here, "x", 5) as folder, pytest.raises(FilesError, match="cannot be written"):
        folder.write("missing/plan.json", "{}")


@pytest.mark.parametrize("odd", ["fifo", "folder", "link", "dangling"])
def test_a_lock_that_is_no_file_keeps_nobody_from_starting(here: Directories, odd: str) -> None:
    folder = here.sessions / "2001-02-03-04-odd"
    folder.mkdir(parents=True)
    make: dict[str, Callable[[Path], None]] = {
        "fifo": lambda path: os.mkfifo(path, 0o600),
        "folder": lambda path: path.mkdir(),
        "link": lambda path: path.symlink_to("/dev/zero"),
        "dangling": lambda path: path.symlink_to(here.sessions / "made by nobody"),
    }
    make[odd](folder / "lock")
    with SessionFolder.create(here, "x", 5) as following:
        assert following.recovered == ()
    assert not (here.sessions / "made by nobody").exists()


def test_a_folder_that_cannot_be_looked_into_keeps_nobody_from_starting(here: Directories) -> None:
    here.sessions.mkdir(parents=True)
    # For root too: whatever is looked up below it fails, and not because it is missing.
    (here.sessions / "2001-02-03-04-odd").symlink_to("x" * 300)
    first = run_one(here)
    run_one(here)
    run_one(here, keep=1)
    assert not first.exists()


def test_an_old_folder_goes_whatever_the_guest_left_in_it(here: Directories) -> None:
    first = run_one(here)
    run_one(here)
    (first / "debug").mkdir()
    # Deeper than a path can be long.
    folder = os.open(first / "debug", os.O_RDONLY)
    for _ in range(100):
        os.mkdir("d" * 100, dir_fd=folder)
        above, folder = folder, os.open("d" * 100, os.O_RDONLY, dir_fd=folder)
        os.close(above)
    os.close(folder)
    (first / "debug").chmod(0)
    run_one(here, keep=1)
    assert not first.exists()


def test_a_start_that_another_holds_up_says_so_in_the_end(here: Directories, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "_LOCK_LIMIT", 0.1)
    run_one(here)
    with (here.sessions / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(FilesError) as refusal:
            run_one(here)
    assert refusal.value.code == "SESSIONS_LOCKED"
    assert str(here.sessions / ".lock") in refusal.value.message
    assert len(list(here.sessions.glob("2*"))) == 1


@pytest.mark.parametrize("held", ["lock", "recovery"])
def test_a_start_that_waits_can_be_interrupted(here: Directories, held: str) -> None:
    # In a process of its own: it ends by a signal.
    run_one(here)
    code = (
        "import sys\n"
        "from droiddeck_session.interruption import tidy_up_first\n"
        "from droiddeck_session.paths import directories\n"
        "from droiddeck_session.session import recovery\n"
        "from droiddeck_session.session.folder import SessionFolder\n"
        "tidy_up_first()\n"
        "def waits(*_):\n"
        "    import time; print('up', flush=True); time.sleep(600)\n"
        "if sys.argv[2] == 'recovery': recovery.Note.read = waits\n"
        "else: print('up', flush=True)\n"
        "with SessionFolder.create(directories({'XDG_STATE_HOME': sys.argv[1]}), 'x', 5): pass\n"
    )
    (here.sessions / "2001-02-03-04-crashed").mkdir()
    with (here.sessions / ".lock").open() as lock:
        if held == "lock":
            fcntl.flock(lock, fcntl.LOCK_EX)
        argv = [sys.executable, "-c", code, str(here.state.parent), held]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=30)
    assert (process.returncode, told) == (143, b"")
    # A folder that was made is finished.
    made = list(here.sessions.glob("20*-x"))
    assert len(made) == (1 if held == "recovery" else 0)
    assert all((path / COMPLETE).exists() and events(path)[-1]["status"] == 143 for path in made)
