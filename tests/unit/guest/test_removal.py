# SPDX-License-Identifier: GPL-3.0-or-later
"""Removing what a guest has written: everything in the tree, nothing else."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droiddeck_session.errors import FilesError
from droiddeck_session.guest.removal import mounts_below, refuse_mounts, remove_tree

if TYPE_CHECKING:
    from pathlib import Path

names = (
    st.binary(min_size=1, max_size=30)
    .filter(lambda name: b"/" not in name and b"\0" not in name)
    .filter(lambda name: name not in {b".", b".."})
)
trees = st.recursive(st.none(), lambda inner: st.dictionaries(names, inner, max_size=4), max_leaves=20)


def plant(folder: Path, tree: object) -> None:
    folder.mkdir()
    assert isinstance(tree, dict)
    for name, inner in tree.items():
        path = folder / os.fsdecode(name)
        if inner is None:
            path.touch()
        else:
            plant(path, inner)
    folder.chmod(0)


@given(st.dictionaries(names, trees, max_size=4))
def test_any_tree_of_folders_without_rights_is_removed(tmp_path_factory: pytest.TempPathFactory, tree: object) -> None:
    top = tmp_path_factory.mktemp("trees") / "top"
    plant(top, tree)
    remove_tree(str(top))
    assert not top.exists()
    assert top.parent.exists()


def test_links_are_removed_and_what_they_point_to_stays(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").touch()
    top = tmp_path / "top"
    top.mkdir()
    (top / "folder").symlink_to(victim)
    (top / "file").symlink_to(victim / "precious")
    (top / "dangling").symlink_to("/no/such")
    (top / "loop").symlink_to("loop")
    remove_tree(str(top))
    assert not top.exists()
    assert (victim / "precious").exists()


def test_a_link_in_place_of_the_tree_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "precious").touch()
    (tmp_path / "link").symlink_to("victim")
    with pytest.raises(FilesError) as refused:
        remove_tree(str(tmp_path / "link"))
    assert refused.value.code == "NOT_REMOVED"
    assert (tmp_path / "victim" / "precious").exists()


def test_sockets_and_fifos_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tmp_path / "top"
    top.mkdir()
    monkeypatch.chdir(top)
    os.mkfifo("fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        remove_tree(str(top))
    assert not top.exists()


def test_a_tree_deeper_than_a_path_may_be_long_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    here = os.open(top, os.O_DIRECTORY)
    for _ in range(1500):
        os.mkdir("folder", dir_fd=here)
        os.close(os.open("file", os.O_CREAT, dir_fd=here))
        inner = os.open("folder", os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    remove_tree(str(top))
    assert not top.exists()


def test_a_folder_of_thousands_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    for number in range(5000):
        os.close(os.open(top / str(number), os.O_CREAT))
    remove_tree(str(top))
    assert not top.exists()


def test_what_is_not_there_is_removed_already(tmp_path: Path) -> None:
    remove_tree(str(tmp_path / "missing"))
    remove_tree(str(tmp_path / "missing" / "deeper"))


def test_mounts_are_told_from_names_that_only_begin_alike() -> None:
    assert "/proc" in mounts_below("/proc")
    assert mounts_below("/pro") == ()


def test_a_tree_with_a_mount_in_it_is_refused_by_the_name_of_the_mount() -> None:
    with pytest.raises(FilesError, match="'/proc'") as refused:
        refuse_mounts("/proc")
    assert refused.value.code == "MOUNT_INSIDE"
