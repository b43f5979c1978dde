# SPDX-License-Identifier: GPL-3.0-or-later
"""The prepared tree: each change is told, and after `restore` nothing is changed, whatever was done."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from droiddeck_session.diagnostics.verify.prepared import BINDS, HELD, entries
from droiddeck_session.diagnostics.verify.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENTRIES = entries(b"\x7fELF a shell")
FILE, FOLDER = "root/ordinary/file", "root/ordinary/folder"


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    made = Tree(str(tmp_path), ENTRIES, HELD)
    yield made
    made.remove()


def test_a_fresh_tree_has_no_changes(tree: Tree) -> None:
    assert tree.changes() == []
    assert tree.changes(closely=True) == []


def test_every_mount_point_and_what_is_bound_is_there(tree: Tree, tmp_path: Path) -> None:
    guest = {path.removeprefix("root") for path in ENTRIES if path.startswith("root")}
    inside = {"/bound/nested": "host/bound/nested", "/bound/sub/bound-file": "host/bound/sub/bound-file"}
    inside |= {"/bound/sub/bound-sh": "host/bound/sub/bound-sh"}
    for mount_point, host in BINDS.items():
        assert mount_point in guest or inside[mount_point] in ENTRIES
        assert (tmp_path / host).exists()
    assert set(HELD) <= set(ENTRIES)
    assert tree.changes() == []


@pytest.mark.parametrize(
    ("path", "change", "told"),
    [
        (FILE, lambda host: os.chmod(host, 0o600), "mode 0644 -> mode 0600"),
        (FILE, os.unlink, f"- {FILE}"),
        (FILE, lambda host: os.utime(host, (1, 1)), "modified prepared -> modified since"),
        (FILE, lambda host: os.rename(host, host + "-2"), f"+ {FILE}-2 is {FILE}"),
        (FILE, lambda host: os.link(host, host + "-2"), "links 1 -> links 2"),
        ("root/links/relative", os.unlink, "- root/links/relative"),
        (FOLDER, lambda host: os.mkdir(host + "/new"), f"+ {FOLDER}/new"),
        (FOLDER, lambda host: os.rename(host, host + "-2"), f"+ {FOLDER}-2 is {FOLDER}"),
        ("host/bound/file", lambda host: os.truncate(host, 3), "size 16 -> size 3"),
    ],
)
def test_a_change_is_told_and_undone(tree: Tree, path: str, change: object, told: str) -> None:
    change(os.path.join(tree.folder, path))  # type: ignore[operator]
    assert any(told in line for line in tree.changes())
    tree.restore()
    assert tree.changes(closely=True) == []


def test_a_mount_point_that_was_moved_keeps_its_inode(tree: Tree) -> None:
    mount_point = f"{tree.folder}/root/deep/mount/point"
    before = os.stat(mount_point).st_ino
    os.rename(f"{tree.folder}/root/deep/mount", f"{tree.folder}/root/ordinary/free")
    assert tree.changes()
    tree.restore()
    assert os.stat(mount_point).st_ino == before
    assert tree.changes(closely=True) == []


def test_a_file_is_called_by_its_first_name_or_as_new(tree: Tree) -> None:
    assert tree.name(os.stat(f"{tree.folder}/root/ordinary/hard-2").st_ino) == "root/ordinary/hard-1"
    new = f"{tree.folder}/{FOLDER}/new"
    os.mkdir(new)
    assert tree.name(os.stat(new).st_ino) == f"new {FOLDER}/new"
    assert tree.name(1) == "of nothing in the tree"


PATHS = st.sampled_from(sorted(path for path in ENTRIES if path.count("/") > 1 and "scratch" not in path))
STEPS = st.lists(st.tuples(st.integers(0, 6), PATHS, PATHS), min_size=1, max_size=6)


def change(step: int, first: str, second: str) -> None:
    if step == 0:
        os.rename(first, second)
    elif step == 1:
        os.unlink(first)
    elif step == 2:
        os.chmod(first, 0o000 if stat.S_ISDIR(os.lstat(first).st_mode) else 0o777)
    elif step == 3:
        os.link(first, second + "-linked", follow_symlinks=False)
    elif step == 4:
        os.mkdir(second + "-made")
    elif step == 5:
        os.rename(first, second + "-moved")
    else:
        os.truncate(first, 2)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_after_restore_nothing_is_changed_whatever_was_done(tree: Tree, steps: list[tuple[int, str, str]]) -> None:
    for step, first, second in steps:
        with contextlib.suppress(OSError):
            change(step, os.path.join(tree.folder, first), os.path.join(tree.folder, second))
    if tree.changes():
        tree.restore()
    assert tree.changes(closely=True) == []
