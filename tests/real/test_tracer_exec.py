# SPDX-License-Identifier: GPL-3.0-or-later
"""execve under the tracer is execve in the kernel: the same programs, arguments, names and errors, row by row."""

from __future__ import annotations

import os
import shutil
import subprocess
from difflib import ndiff
from typing import TYPE_CHECKING, Final

import pytest
from backend_trials import PEOPLE, Person, open_folder
from tracer_exec_cases import GROUPS, UNREADABLE, Attempt
from tracer_exec_files import build

from droiddeck_session.paths import native_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

pytestmark = pytest.mark.real

# Where the folder of programs lies in the guest: a folder that every Debian has.
PLACE = "/mnt"
# The same binds in a private mount namespace, then chroot: $1 root, $2 folder, $3 uid:gid, then the program.
TRUTH = """
set -e
root=$1 folder=$2 person=$3; shift 3
mount --bind "$root" "$root"
mount --bind "$folder" "$root/mnt"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot --userspec="$person" --groups= "$root" "$@"
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with open_folder() as made:
        build(made, PLACE)
        yield made


@pytest.fixture(scope="module")
def tracer() -> Iterator[Path]:
    """The tracer, where a stranger can reach it and its loader."""
    with open_folder() as made:
        for name in ("droiddeck-tracer", "droiddeck-loader"):
            shutil.copy(native_file(name, os.uname().machine), made / name)
        yield made / "droiddeck-tracer"


def ask(command: Sequence[str | os.PathLike[str]], rows: Sequence[Attempt]) -> dict[str, list[str]]:
    """Run exec_try on all rows; what it said about each."""
    lines = "".join(f"{row.line(PLACE)}\n" for row in rows)
    run = subprocess.run(
        [*command, f"{PLACE}/exec-try"], input=os.fsencode(lines), capture_output=True, timeout=55, check=False, cwd="/"
    )
    answers: dict[str, list[str]] = {}
    for line in os.fsdecode(run.stdout).split("\n"):
        if line.startswith("== "):
            answers[line.removeprefix("== ")] = said = []
        elif line:
            said.append(line)
    assert run.returncode == 0, run.stderr
    return answers


def truth(rootfs: Path, folder: Path, person: Person) -> list[str | os.PathLike[str]]:
    in_namespace = ["unshare", "--mount", "--propagation", "private", "sh", "-c", TRUTH, "sh"]
    return [*in_namespace, rootfs, folder, f"{person.uid}:{person.gid}"]


def traced(tracer: Path, rootfs: Path, folder: Path, person: Person) -> list[str | os.PathLike[str]]:
    become = ["setpriv", f"--reuid={person.uid}", f"--regid={person.gid}", "--clear-groups"]
    as_person = become if os.geteuid() == 0 else []
    return [*as_person, tracer, "-r", rootfs, "-b", "/proc", "-b", "/dev", "-b", f"{folder}:{PLACE}"]


@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel's truth is a chroot, for which root is needed")
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("who", PEOPLE)
def test_every_attempt_ends_as_it_does_in_the_kernel(
    who: str, group: str, rootfs: Path, folder: Path, tracer: Path
) -> None:
    rows = GROUPS[group](folder)
    expected = ask(truth(rootfs, folder, PEOPLE[who]), rows)
    assert set(expected) == {row.name.replace("@/", f"{PLACE}/") for row in rows}
    given = ask(traced(tracer, rootfs, folder, PEOPLE[who]), rows)
    assert differences(expected, given) == {}


def differences(expected: dict[str, list[str]], given: dict[str, list[str]]) -> dict[str, list[str]]:
    """Of each attempt that ended otherwise, the lines that differ."""
    return {
        name: [line for line in ndiff(said, given.get(name, [])) if not line.startswith(" ")]
        for name, said in expected.items()
        if said != given.get(name)
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read them")
def test_a_program_that_may_not_be_read_is_refused(rootfs: Path, folder: Path, tracer: Path) -> None:
    """The loader has to read what the kernel would only execute."""
    rows = [Attempt("execve", "-", f"@/{name}") for name in sorted(UNREADABLE)]
    answers = ask(traced(tracer, rootfs, folder, PEOPLE["stranger"]), rows)
    assert list(answers.values()) == [["errno: EACCES", "exit: 99"]] * len(rows)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's tracer has callers of another user")
def test_a_program_without_a_path_is_refused_to_another_user(rootfs: Path, folder: Path, tracer: Path) -> None:
    """The loader cannot open what the tracer holds for it."""
    rows = [Attempt(method, "uid=1234", "@/show-static") for method in ("memfd", "removed")]
    answers = ask(traced(tracer, rootfs, folder, PEOPLE["caller"]), rows)
    assert list(answers.values()) == [["errno: EACCES", "exit: 99"]] * len(rows)


@pytest.mark.parametrize("who", PEOPLE)
def test_many_execs_at_once_each_get_their_own_program(who: str, rootfs: Path, folder: Path, tracer: Path) -> None:
    command = [*traced(tracer, rootfs, folder, PEOPLE[who]), f"{PLACE}/exec-burst", "8", "25", f"{PLACE}/exit-number"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=55, check=False, cwd="/")
    assert (run.returncode, run.stdout, run.stderr) == (0, "0 failures\n", "")


def test_proc_names_the_programs_of_others(rootfs: Path, folder: Path, tracer: Path) -> None:
    ask_all = """
        sleep 50 & sleeper=$!
        while [ "$(readlink /proc/$sleeper/exe)" = "$(readlink /proc/$$/exe)" ]; do :; done
        readlink /proc/$sleeper/exe /proc/self/exe /proc/$$/exe /proc/$sleeper/task/$sleeper/exe
        kill $sleeper
    """
    command = [*traced(tracer, rootfs, folder, PEOPLE["caller"]), "/bin/sh", "-c", ask_all]
    run = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False, cwd="/")
    sleep, readlink, shell, thread = run.stdout.splitlines()
    assert (sleep, readlink, shell, thread) == (
        "/usr/bin/sleep",
        "/usr/bin/readlink",
        "/usr/bin/dash",
        "/usr/bin/sleep",
    )


FIRST: Final = {
    "show-static": 0,
    "plain": 0,
    "nested-4": 0,
    "shell": 5,
    "nested-5": 126,
    "empty": 126,
    "readable": 126,
    "nothing": 127,
    "missing": 127,
}


@pytest.mark.parametrize("name", FIRST)
def test_the_first_program_may_be_any(name: str, rootfs: Path, folder: Path, tracer: Path) -> None:
    """It is started before there is a loader whose memory the tracer could use."""
    command = [*traced(tracer, rootfs, folder, PEOPLE["caller"]), f"{PLACE}/{name}", "one"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False, cwd="/")
    assert run.returncode == FIRST[name], run.stderr
    assert bool(run.stdout) == (FIRST[name] < 126)
    assert run.stderr.startswith("droiddeck-tracer: ") == (FIRST[name] >= 126)
