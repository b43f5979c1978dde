# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking into a hostile rootfs: whatever its links say, nothing outside is seen, made or read."""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from droiddeck_session.errors import FilesError
from droiddeck_session.rootfs import LINK_LIMIT, GuestPath, look_up, make_mount_point, read_file


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the rootfs that nothing of the rootfs may reach."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("host")
    return folder


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    """A rootfs with the links that a hostile one would have."""
    top = tmp_path / "root fs"
    for folder in ("etc", "usr/bin", "run/real", "a/b/c"):
        (top / folder).mkdir(parents=True)
    (top / "usr/bin/env").write_text("#!")
    (top / "usr/bin/env").chmod(0o755)
    (top / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\n")
    os.mkfifo(top / "fifo")
    links = {
        "bin": "usr/bin",
        "var-run": "/run",
        "up": "../../../../../../../../..",
        "a/b/c/up": "../../../../../..",
        "absolute": str(outside),
        "relative": "../outside",
        "etc/resolv.conf": "../run/systemd/resolve/stub-resolv.conf",
        "loop": "loop",
        "ping": "pong",
        "pong": "ping",
        "into-file": "etc/passwd/x",
    }
    for link, target in links.items():
        (top / link).symlink_to(target)
    return top


@pytest.mark.parametrize(
    ("path", "kind", "resolved"),
    [
        ("/", "directory", "/"),
        ("//etc/./passwd", "file", "/etc/passwd"),
        ("/bin/env", "file", "/usr/bin/env"),
        ("/bin/../lib", "missing", "/usr/lib"),
        ("/var-run/real", "directory", "/run/real"),
        ("/fifo", "other", "/fifo"),
        ("/..", "directory", "/"),
        ("/up", "directory", "/"),
        ("/up/etc/passwd", "file", "/etc/passwd"),
        ("/a/b/c/up/etc", "directory", "/etc"),
        ("/relative", "missing", "/outside"),
        ("/relative/secret", "missing", "/outside/secret"),
        ("/etc/resolv.conf", "missing", "/run/systemd/resolve/stub-resolv.conf"),
        ("/none/../etc", "missing", "/etc"),
        ("/etc/passwd/x", "unreachable", "/etc/passwd/x"),
        ("/into-file", "unreachable", "/etc/passwd/x"),
        ("/loop", "unreachable", "/loop"),
        ("/ping/x", "unreachable", "/ping/x"),
        ("/a/a", "missing", "/a/a"),
    ],
)
def test_a_path_is_looked_up_as_a_process_inside_would(root: Path, path: str, kind: str, resolved: str) -> None:
    found = look_up(str(root), path)
    assert (found.kind, found.resolved) == (kind, resolved)


def test_an_absolute_link_is_the_guest_s_own(root: Path, outside: Path) -> None:
    assert look_up(str(root), "/absolute/secret") == GuestPath(kind="missing", resolved=f"{outside}/secret")
    inner = root / str(outside).lstrip("/")
    inner.mkdir(parents=True)
    (inner / "secret").touch()
    assert look_up(str(root), "/absolute/secret").kind == "file"


def test_what_can_be_run_and_entered_is_told(root: Path) -> None:
    assert look_up(str(root), "/bin/env").executable
    assert not look_up(str(root), "/etc/passwd").executable
    assert look_up(str(root), "/etc").executable


def test_as_many_links_as_the_kernel_follows_are_followed(root: Path) -> None:
    (root / "chain0").mkdir()
    for number in range(LINK_LIMIT + 1):
        (root / f"chain{number + 1}").symlink_to(f"chain{number}")
    assert look_up(str(root), f"/chain{LINK_LIMIT}").kind == "directory"
    assert look_up(str(root), f"/chain{LINK_LIMIT + 1}").kind == "unreachable"
    assert (root / f"chain{LINK_LIMIT}").is_dir()
    with pytest.raises(OSError, match="symbolic links"):
        (root / f"chain{LINK_LIMIT + 1}").stat()


def test_a_tree_deeper_than_a_path_can_be_long_is_walked_and_holds_no_descriptors(root: Path) -> None:
    name, depth = "d" * 200, 200
    current = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=current)
        following = os.open(name, os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = following
    os.close(current)
    deep = "/" + "/".join([name] * depth)
    before = len([*Path("/proc/self/fd").iterdir()])
    assert look_up(str(root), deep) == GuestPath(kind="directory", resolved=deep, executable=True)
    assert look_up(str(root), f"{deep}/..").resolved == deep.rpartition("/")[0]
    make_mount_point(str(root), f"{deep}/new", directory=False)
    assert look_up(str(root), f"{deep}/new").kind == "file"
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_odd_bytes_survive(root: Path) -> None:
    odd = "/sp ace/new\nline/co:lon/\udcff"
    make_mount_point(str(root), odd, directory=True)
    assert look_up(str(root), odd).kind == "directory"
    assert (Path(str(root) + odd)).is_dir()
    assert look_up(str(root), "/" + "x" * 256).kind == "missing"


@pytest.mark.parametrize("directory", [True, False])
@pytest.mark.parametrize(
    ("path", "made"),
    [
        ("/new", "new"),
        ("/x/y/z", "x/y/z"),
        ("/var-run/deep/new", "run/deep/new"),
        ("/etc/resolv.conf", "run/systemd/resolve/stub-resolv.conf"),
        ("/relative/new", "outside/new"),
        ("/up/new", "new"),
    ],
)
def test_a_mount_point_is_made_inside(root: Path, outside: Path, path: str, made: str, *, directory: bool) -> None:
    make_mount_point(str(root), path, directory=directory)
    mode = (root / made).lstat().st_mode
    assert stat.S_ISDIR(mode) if directory else stat.S_ISREG(mode)
    assert [path.name for path in outside.iterdir()] == ["secret"]
    # Made once more, it is there already.
    make_mount_point(str(root), path, directory=directory)


def test_an_absolute_link_makes_no_mount_point_outside(root: Path, outside: Path) -> None:
    make_mount_point(str(root), "/absolute/new", directory=False)
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (root / str(outside).lstrip("/") / "new").is_file()


@pytest.mark.parametrize(
    ("path", "directory"),
    [
        ("/etc/passwd", True),
        ("/etc", False),
        ("/etc/passwd/x", False),
        ("/loop", True),
        ("/loop", False),
        ("/fifo", True),
    ],
)
def test_what_is_in_the_way_is_named(root: Path, path: str, *, directory: bool) -> None:
    with pytest.raises(FilesError, match=path) as refusal:
        make_mount_point(str(root), path, directory=directory)
    assert refusal.value.code == "MOUNT_POINT"


def test_a_rootfs_that_is_not_there_is_named(tmp_path: Path) -> None:
    for call in (look_up, lambda top, path: make_mount_point(top, path, directory=True)):
        with pytest.raises(FilesError, match="no such guest") as refusal:
            call(str(tmp_path / "no such guest"), "/etc")
        assert refusal.value.code == "ROOTFS_UNREADABLE"


def test_only_regular_files_inside_are_read(root: Path, outside: Path) -> None:
    (outside / "passwd").write_text("host")
    (root / "etc/shadow").symlink_to(outside / "passwd")
    assert read_file(str(root), "/etc/passwd", limit=4) == b"root"
    for path in ("/etc/shadow", "/absolute/secret", "/relative/secret", "/fifo", "/etc", "/none"):
        assert read_file(str(root), path, limit=100) is None


def test_a_folder_that_is_swapped_for_a_link_meanwhile_leads_nowhere(root: Path, outside: Path) -> None:
    # A process that swaps a folder and a link to the outside as fast as it can.
    (root / "swap").mkdir()
    (root / "swap/secret").write_text("guest")
    code = (
        "import os, sys\n"
        f"os.chdir({str(root)!r})\n"
        f"os.symlink({str(outside)!r}, 'link')\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    os.rename('swap', 'folder'); os.rename('link', 'swap')\n"
        "    os.rename('swap', 'link'); os.rename('folder', 'swap')\n"
    )
    swapper = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == b"ready\n"
        seen = {read_file(str(root), "/swap/secret", limit=100) for _ in range(3000)}
        for number in range(300):
            try:
                make_mount_point(str(root), f"/swap/new{number}", directory=False)
            except FilesError:
                continue
    finally:
        swapper.kill()
        swapper.communicate()
    assert b"host" not in seen
    assert [path.name for path in outside.iterdir()] == ["secret"]


# linux/sched.h; with it chroot is not root's alone.
CLONE_NEWUSER = 0x10000000

component = st.sampled_from(["a", "b", "..", ".", "l", "m"])
walk = st.lists(component, min_size=1, max_size=6).map("/".join)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(link=st.tuples(st.booleans(), walk), m=st.tuples(st.booleans(), walk), asked=walk)
def test_the_answer_is_the_kernel_s_under_chroot(
    tmp_path_factory: pytest.TempPathFactory, link: tuple[bool, str], m: tuple[bool, str], asked: str
) -> None:
    root = tmp_path_factory.mktemp("rootfs")
    (root / "a/b/a").mkdir(parents=True)
    (root / "b").touch()
    (root / "a/m").symlink_to("/b" if m[0] else "../b")
    for name, (absolute, target) in (("l", link), ("m", m)):
        (root / name).symlink_to(f"/{target}" if absolute else target)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() != 0:
                ctypes.CDLL(None).unshare(CLONE_NEWUSER)
            os.chroot(root)
            os.chdir("/")
            try:
                found = Path(f"/{asked}").stat()
                answer = f"{found.st_dev} {found.st_ino}"
            except FileNotFoundError:
                answer = "missing"
            except OSError:
                answer = "unreachable"
            os.write(writer, answer.encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        expected = stream.read()
    os.waitpid(child, 0)
    mine = look_up(str(root), f"/{asked}")
    if expected in {"missing", "unreachable"}:
        assert mine.kind == expected
        return
    at = (root / mine.resolved.lstrip("/")).lstat()
    assert f"{at.st_dev} {at.st_ino}" == expected
    assert mine.kind == ("directory" if stat.S_ISDIR(at.st_mode) else "file")
