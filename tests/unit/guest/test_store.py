# SPDX-License-Identifier: GPL-3.0-or-later
"""The store of guests: names, look-up, locks, and that nothing half made or half removed is ever a guest."""

from __future__ import annotations

import contextlib
import os
import signal
import string
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from guest_trees import fill
from hypothesis import given
from hypothesis import strategies as st

from droiddeck_session.errors import DroiddeckError
from droiddeck_session.guest.store import GuestRecord, require_name, use

if TYPE_CHECKING:
    from guest_trees import Workshop

ROOT = Path(__file__).parents[3]
# Makes a stage for the guest NAME, says so, and waits until its input ends or it is killed.
HOLD_A_STAGE = """
import sys
from droiddeck_session.guest.store import GuestStore
from droiddeck_session.paths import directories
with GuestStore(directories({"HOME": sys.argv[1]})).reserve(sys.argv[2]) as stage:
    (stage.rootfs / "half").mkdir()
    print("reserved", flush=True)
    sys.stdin.read()
"""

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


def refusal(code: str) -> pytest.RaisesExc[DroiddeckError]:
    return pytest.RaisesExc(DroiddeckError, check=lambda error: error.code == code)


def holder(workshop: Workshop, name: str) -> subprocess.Popen[bytes]:
    home = workshop.folders.config.parent.parent
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD_A_STAGE, str(home), name],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"reserved\n"
    return process


def end(process: subprocess.Popen[bytes], number: int) -> None:
    process.send_signal(number)
    process.communicate()


@pytest.mark.parametrize("path", ["/", "//", "/usr/..", "/proc/self/root"])
def test_the_machines_own_root_is_no_guest(workshop: Workshop, path: str) -> None:
    with refusal("HOST_ROOT"):
        workshop.store.find(path)


@pytest.mark.parametrize("name", ["demo", "0", "debian-13.1_x", "a" * 64])
def test_a_name_is_accepted(name: str) -> None:
    require_name(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", ".hidden", "-x", "_x", "A", "a b", "a/b", "a\n", "a\0", "ä", "a" * 65, "\udcff", "@session@"],
)
def test_what_is_no_name_is_refused(workshop: Workshop, name: str) -> None:
    with refusal("BAD_GUEST_NAME"):
        workshop.store.find(name)
    with refusal("BAD_GUEST_NAME"), workshop.store.reserve(name):
        pytest.fail("reserved")
    with refusal("BAD_GUEST_NAME"):
        workshop.store.remove(name)


@given(words)
def test_a_name_that_is_accepted_is_one_plain_component(name: str) -> None:
    try:
        require_name(name)
    except DroiddeckError:
        return
    assert set(name) <= set(string.ascii_lowercase + string.digits + "._-")
    assert 0 < len(name) <= 64
    assert name[0] not in "._-"


@given(
    words,
    st.dictionaries(words, words),
    st.datetimes(min_value=datetime(2000, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - hypothesis adds the zone
    st.binary(max_size=20),
)
def test_a_record_survives_its_file(name: str, packages: dict[str, str], created: datetime, path: bytes) -> None:
    record = GuestRecord(name=name, source=os.fsdecode(path), created=created, packages=packages)
    assert GuestRecord.from_json(record.to_json()) == record


def test_a_guest_is_found_by_name(workshop: Workshop) -> None:
    made = workshop.make("demo")
    assert workshop.store.find("demo") == made
    assert workshop.store.list() == (made,)
    assert made.record is not None
    assert made.record.source == "a test"


def test_the_store_is_the_callers_alone(workshop: Workshop) -> None:
    workshop.make("demo")
    assert [path.stat().st_mode & 0o777 for path in (workshop.guests, workshop.guests / "demo")] == [0o700, 0o700]


def test_an_empty_store_names_the_verb_that_makes_a_guest(workshop: Workshop) -> None:
    with refusal("NO_GUEST") as refused:
        workshop.store.find("demo")
    assert refused.value.hint == "make one: droiddeck-session guest create"
    with refusal("NO_GUEST") as refused:
        workshop.store.find("other")
    assert refused.value.hint.endswith("guest create other")


def test_an_unknown_guest_is_answered_with_the_known_and_the_nearest(workshop: Workshop) -> None:
    workshop.make("demo")
    workshop.make("games")
    with refusal("UNKNOWN_GUEST") as refused:
        workshop.store.find("dmo")
    assert "demo, games" in refused.value.message
    assert "did you mean 'demo'?" in refused.value.hint


def test_a_rootfs_is_found_by_its_absolute_path(workshop: Workshop, tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"odd \xff:\nname")
    fill(root)
    link = tmp_path / "link"
    link.symlink_to(root)
    found = workshop.store.find(str(link))
    assert (found.name, found.root, found.folder) == (str(link), str(root), None)
    with use(found) as lock:
        assert lock is None


def test_a_guest_of_the_store_given_by_path_is_that_guest(workshop: Workshop) -> None:
    made = workshop.make("demo")
    assert workshop.store.find(made.root) == made


@pytest.mark.parametrize("path", ["/proc/self/status", "/no/such/folder"])
def test_a_path_that_is_no_folder_is_refused(workshop: Workshop, path: str) -> None:
    with refusal("UNKNOWN_GUEST"):
        workshop.store.find(path)


def test_a_folder_that_is_no_rootfs_is_refused(workshop: Workshop, tmp_path: Path) -> None:
    with refusal("BROKEN_GUEST"):
        workshop.store.find(str(tmp_path))


def test_a_guest_without_env_is_broken_and_says_what_is_missing(workshop: Workshop) -> None:
    made = workshop.make("demo")
    program = Path(made.root, "usr/bin/env")
    program.chmod(0o644)
    with refusal("BROKEN_GUEST") as refused:
        workshop.store.find("demo")
    assert "is no executable file" in refused.value.message
    program.unlink()
    with refusal("BROKEN_GUEST") as refused:
        workshop.store.find("demo")
    assert "/usr/bin/env is missing" in refused.value.message
    assert "guest remove demo" in refused.value.hint
    assert [guest.name for guest in workshop.store.list()] == ["demo"]


def test_env_that_links_out_of_the_rootfs_does_not_count(workshop: Workshop) -> None:
    made = workshop.make("demo")
    program = Path(made.root, "usr/bin/env")
    program.unlink()
    program.symlink_to("../../../../../../../../../usr/bin/python3")
    with refusal("BROKEN_GUEST"):
        workshop.store.find("demo")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2}', "\0", "\ud83d"])
def test_a_record_that_cannot_be_read_is_no_obstacle(workshop: Workshop, text: str) -> None:
    workshop.make("demo")
    (workshop.guests / "demo" / "guest.json").write_bytes(text.encode(errors="surrogatepass"))
    assert workshop.store.find("demo").record is None


def test_the_name_of_a_guest_cannot_be_reserved(workshop: Workshop) -> None:
    workshop.make("demo")
    with refusal("GUEST_EXISTS"), workshop.store.reserve("demo"):
        pytest.fail("reserved")
    assert workshop.entries() == ["demo"]


def test_a_stage_that_fails_leaves_nothing(workshop: Workshop) -> None:
    with contextlib.suppress(RuntimeError), workshop.store.reserve("demo") as stage:
        (stage.rootfs / "etc").mkdir()
        raise RuntimeError
    assert workshop.entries() == []


def test_a_name_that_is_being_made_cannot_be_reserved(workshop: Workshop) -> None:
    process = holder(workshop, "demo")
    with refusal("GUEST_BEING_MADE"), workshop.store.reserve("demo"):
        pytest.fail("reserved")
    workshop.make("demo-2")
    assert workshop.store.names() == ("demo-2",)
    assert len(list(workshop.guests.glob(".stage-demo-*"))) == 1
    end(process, signal.SIGKILL)


def test_what_a_killed_process_left_is_never_listed_and_cleared_by_the_next(workshop: Workshop) -> None:
    end(holder(workshop, "demo"), signal.SIGKILL)
    assert len(list(workshop.guests.glob(".stage-demo-*/rootfs/half"))) == 1
    assert workshop.store.list() == ()
    workshop.make("demo")
    assert workshop.entries() == ["demo"]


def test_a_removal_that_was_killed_is_finished_by_the_next_command(workshop: Workshop) -> None:
    workshop.make("demo")
    workshop.make("other")
    (workshop.guests / "demo").rename(workshop.guests / ".trash-demo-0123456789abcdef")
    workshop.store.remove("other")
    assert workshop.entries() == []


def test_folders_that_are_not_ours_stay(workshop: Workshop) -> None:
    workshop.make("demo")
    (workshop.guests / ".stage-").mkdir()
    (workshop.guests / "Notes").mkdir()
    workshop.store.remove("demo")
    assert workshop.entries() == [".stage-", "Notes"]


def test_a_guest_in_use_cannot_be_removed_and_is_whole(workshop: Workshop) -> None:
    made = workshop.make("demo")
    with use(made), use(made):
        with refusal("GUEST_IN_USE"):
            workshop.store.remove("demo")
        assert workshop.store.find("demo") == made
    workshop.store.remove("demo")
    assert workshop.entries() == []


def test_no_child_inherits_the_lock(workshop: Workshop) -> None:
    with use(workshop.make("demo")) as lock:
        assert lock is not None
        assert not os.get_inheritable(lock)


def test_a_guest_that_was_removed_meanwhile_cannot_be_used(workshop: Workshop) -> None:
    made = workshop.make("demo")
    workshop.store.remove("demo")
    with refusal("UNKNOWN_GUEST"), use(made):
        pytest.fail("used")


def test_a_guest_elsewhere_that_is_linked_into_the_store_loses_its_link_only(
    workshop: Workshop, tmp_path: Path
) -> None:
    made = workshop.make("demo")
    elsewhere = Path(made.root).parent.rename(tmp_path / "elsewhere")
    (workshop.guests / "demo").symlink_to(elsewhere)
    assert workshop.store.find("demo").root == str(elsewhere / "rootfs")
    workshop.store.remove("demo")
    assert workshop.entries() == []
    assert (elsewhere / "rootfs" / "usr" / "bin" / "env").exists()


def test_a_store_that_is_a_file_is_named(workshop: Workshop) -> None:
    workshop.guests.parent.mkdir(parents=True)
    workshop.guests.write_text("")
    with refusal("STORE_UNUSABLE") as refused, workshop.store.reserve("demo"):
        pytest.fail("reserved")
    assert str(workshop.guests) in refused.value.message
