# SPDX-License-Identifier: GPL-3.0-or-later
"""From a directory that is no more: its old name leads nowhere.

What stands there now, or where it lay, is never taken for it, least of all a
link that the host would follow to a file of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from traced import SmallGuest, answers

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = ("/usr/bin/python3", "-IS", "-c")
BEGIN = """
import errno, os, sys
def tried(call, *words, **more):
    try:
        return call(*words, **more)
    except OSError as error:
        return errno.errorcode[error.errno]
def opened(path, at=None):
    with os.fdopen(os.open(path, os.O_RDONLY, dir_fd=at), "rb") as file:
        return file.read()
def asked(paths, at=None):
    for path in paths:
        known = [tried(lambda: bool(os.stat(path, dir_fd=at))), tried(os.readlink, path, dir_fd=at)]
        known += [tried(opened, path, at), tried(lambda: os.access(path, os.F_OK, dir_fd=at))]
        known += [tried(os.rename, path, "/spot/moved", src_dir_fd=at), tried(os.mkdir, path + "/made", dir_fd=at)]
        known += [tried(lambda: sorted(os.listdir(path))) if at is None else ""]
        print(path.replace(sys.argv[1], "SECRET"), known)
"""
NAMESAKE = """
os.mkdir("/spot/x"); os.chdir("/spot/x"); held = os.open(".", os.O_PATH); os.rmdir("/spot/x")
if sys.argv[2] == "link":
    os.symlink(sys.argv[1], "/spot/x (deleted)")
else:
    os.makedirs("/spot/x (deleted)/sub"); open("/spot/x (deleted)/text", "w").close()
"""
PARENTS = """
os.makedirs("/spot/p/x"); os.chdir("/spot/p/x"); held = os.open(".", os.O_PATH)
os.rmdir("/spot/p/x"); os.rmdir("/spot/p")
os.symlink(sys.argv[1], "/spot/p")
"""
RELATIVE = """
up = "../" * 30
paths = ("text", "./text", "sub/more", "sub/../text", "link", "../x (deleted)/text", ".", "..", "../..", "../text",
         "../sub/more", "../sub/../text", "../link", "../../p/text", up,
         up + "etc/hostname", up + sys.argv[1][1:] + "/text")
"""
ASK = "asked(paths); asked(paths, held); print(tried(os.chdir, '..'), tried(os.getcwd), tried(os.chdir, 'sub'))"
THROUGH_PROC = "asked([place + path for place in ('/proc/self/cwd/', f'/proc/self/fd/{held}/') for path in paths])"
OWN_NAME = """
os.mkdir("/spot/y (deleted)"); os.chdir("/spot/y (deleted)"); open("f", "w").close(); os.mkdir("s")
asked(("f", "s/../f", "../y (deleted)/f", "/proc/self/cwd/f", "..")); print(os.getcwd())
"""


def secret(guest: SmallGuest) -> Path:
    """Files of the host that no bind shows."""
    made = guest.top / "secret"
    (made / "sub").mkdir(parents=True)
    (made / "text").write_text("of the host")
    (made / "sub" / "more").write_text("of the host")
    (made / "link").symlink_to(made / "text")
    return made


def run(top: Path, script: str, *words: str, traced: bool) -> tuple[int, list[str], str]:
    top.mkdir()
    guest = SmallGuest(top)
    hidden = secret(guest)
    before = sorted(hidden.rglob("*"))
    program = (*PYTHON, BEGIN + script, str(hidden), *words)
    done = answers(guest.traced(*program) if traced else guest.truth(*program))
    assert sorted(hidden.rglob("*")) == before
    assert "of the host" not in str(done)
    return done


@pytest.mark.parametrize(("left", "words"), [(NAMESAKE, ["link"]), (NAMESAKE, ["folder"]), (PARENTS, [])])
def test_relative_paths_lead_where_they_do_in_the_kernel(tmp_path: Path, left: str, words: list[str]) -> None:
    script = left + RELATIVE + ASK
    truth = run(tmp_path / "truth", script, *words, traced=False)
    assert truth[0] == 0, truth
    assert run(tmp_path / "traced", script, *words, traced=True) == truth


@pytest.mark.parametrize(("left", "words"), [(NAMESAKE, ["link"]), (NAMESAKE, ["folder"]), (PARENTS, [])])
def test_through_procfs_nothing_of_the_host_is_seen_or_changed(tmp_path: Path, left: str, words: list[str]) -> None:
    status, _, errors = run(tmp_path / "traced", left + RELATIVE + THROUGH_PROC, *words, traced=True)
    assert (status, errors) == (0, "")


def test_a_directory_may_really_be_called_so(tmp_path: Path) -> None:
    truth = run(tmp_path / "truth", OWN_NAME, traced=False)
    assert run(tmp_path / "traced", OWN_NAME, traced=True) == truth


@pytest.mark.parametrize("options", [(), ("-i", "1234:1234")])
def test_a_removed_working_directory_is_still_asked_about(guest: SmallGuest, options: tuple[str, ...]) -> None:
    ask = """import os
os.mkdir("/spot/y"); os.chdir("/spot/y"); held = os.open(".", os.O_PATH); os.rmdir("/spot/y")
print(os.stat(".").st_nlink, os.lstat("./").st_nlink, os.access(".", os.R_OK), os.stat(".", dir_fd=held).st_nlink)
"""
    assert answers(guest.traced(*PYTHON, ask, options=options))[1] == ["0 0 True 0"]
