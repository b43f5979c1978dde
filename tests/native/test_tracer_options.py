# SPDX-License-Identifier: GPL-3.0-or-later
"""The tracer's command line: spelled as proot's, and a mistake is an error of one line with status 125."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from traced import ENVIRON, TRACER, SmallGuest, answers

from droiddeck_proot.options import known_options

if TYPE_CHECKING:
    from pathlib import Path


def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TRACER, *words], capture_output=True, text=True, timeout=60, env={**ENVIRON, **environ}, check=False
    )


def test_help_lists_the_options_as_proots_does() -> None:
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert {
        "r", "rootfs", "b", "bind", "w", "cwd", "i", "change-id", "0", "root-id", "k", "kernel-release", "kill-on-exit",
        "help", "version",
    } <= set(known_options(done.stdout))  # fmt: skip


def test_version_names_the_program() -> None:
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("droiddeck-tracer 0.")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--link2symlink", "true"], "unknown option --link2symlink"),
        (["-x", "true"], "unknown option -x"),
        (["--rootfs"], "option --rootfs wants a value"),
        (["--kill-on-exit=yes", "true"], "option --kill-on-exit takes no value"),
        ([], "no program to run; see --help"),
        (["-r", "/not/there", "true"], "root /not/there: No such file or directory"),
        (["-b", "/not/there", "true"], "bind /not/there: No such file or directory"),
        (["-b", "/etc:etc", "true"], "bind /etc:etc: want HOST or HOST:GUEST, GUEST an absolute path"),
        (["-b", "/etc:/etc/hostname/x", "true"], "bind /etc: mount point /etc/hostname/x: Not a directory"),
        (["-w", "/not/there", "true"], "working directory /not/there: No such file or directory"),
        (["-i", "12", "true"], "-i 12: want UID:GID"),
        (["-i", "1:x", "true"], "-i 1:x: want UID:GID"),
        (["-k", "\\a\\b\\", "true"], "-k \\a\\b\\: neither a release nor"),
    ],
)
def test_a_mistake_is_one_line_and_status_125(words: list[str], says: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith(f"droiddeck-tracer: {says}")
    assert done.stderr.count("\n") == 1


def test_working_without_seccomp_is_refused_with_a_reason() -> None:
    done = run("true", PROOT_NO_SECCOMP="1")
    assert (done.returncode, done.stdout) == (125, "")
    assert "PROOT_NO_SECCOMP: this tracer works by a seccomp filter alone" in done.stderr


def test_a_fast_path_key_that_is_none_is_refused() -> None:
    assert run("true", PROOT_FASTPATH="abc").returncode == 125


@pytest.mark.parametrize(("program", "status"), [("not-there", 127), ("/not/there", 127), ("/etc/hostname", 126)])
def test_a_program_that_cannot_be_run_is_told_as_env_does(guest: SmallGuest, program: str, status: int) -> None:
    done = guest.traced(program)
    assert done.returncode == status
    assert done.stderr.startswith(f"droiddeck-tracer: {program}: ".encode())


def test_the_program_is_searched_for_in_the_guest(guest: SmallGuest) -> None:
    folder = guest.root / "opt" / "only guest"
    folder.mkdir(parents=True)
    program = folder / "of-the-guest"
    program.write_text("#!/bin/sh\necho $0 $1\n")
    program.chmod(0o755)
    (guest.root / "folder" / "of-the-guest").mkdir(parents=True)
    done = guest.traced("of-the-guest", "x", environ={"PATH": "/nowhere:/folder:/opt/only guest"})
    assert answers(done) == (0, ["/opt/only guest/of-the-guest x"], "")
    assert guest.traced("of-the-guest", environ={"PATH": "/folder"}).returncode == 126


@pytest.mark.parametrize("options", [["-w", "/spot/here"], ["--cwd=/spot/here"], ["--cwd", "/spot/link"]])
def test_the_working_directory_is_a_guest_path(guest: SmallGuest, options: list[str]) -> None:
    (guest.work / "here").mkdir()
    (guest.work / "link").symlink_to("/spot/here")
    assert answers(guest.traced("/bin/pwd", options=options)) == (0, ["/spot/here"], "")


def test_a_bound_working_directory_has_its_guest_name(guest: SmallGuest) -> None:
    (guest.top / "a").mkdir()
    guest.binds.append((str(guest.top / "a"), "/test"))
    assert answers(guest.traced("/bin/pwd", options=["-w", "/test"])) == (0, ["/test"], "")


def test_words_after_the_program_are_its_own(guest: SmallGuest) -> None:
    assert answers(guest.traced("/bin/echo", "-r", "--help")) == (0, ["-r --help"], "")


def test_the_host_itself_is_the_guest_without_a_root(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of the host")
    done = run("-w", str(tmp_path), "cat", "file")
    assert (done.returncode, done.stdout) == (0, "of the host")


def test_no_file_of_the_tracers_own_is_left_behind(guest: SmallGuest) -> None:
    tmp = guest.top / "tmp"
    tmp.mkdir()
    guest.binds.append((str(guest.work), "/new/folder/there"))
    options = ["-k", "9.9.9"]
    done = guest.traced(
        "/bin/sh", "-c", "ls /new; touch /new/x; uname -r", options=options, environ={"PROOT_TMP_DIR": str(tmp)}
    )
    assert answers(done) == (0, ["folder", "9.9.9"], "")
    assert list(tmp.iterdir()) == []
