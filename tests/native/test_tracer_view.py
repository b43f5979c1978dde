# SPDX-License-Identifier: GPL-3.0-or-later
"""What a guest is shown: binds, glue where their mount points are missing, the kernel's identity, names of sockets."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest
from traced import SmallGuest, answers, built

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = ("/usr/bin/python3", "-S", "-c")


def test_missing_mount_points_are_shown_and_nothing_is_made_in_the_rootfs(guest: SmallGuest) -> None:
    (guest.top / "deep").mkdir()
    (guest.top / "deep" / "file").write_text("deep")
    (guest.top / "text").write_text("text")
    guest.binds += [
        (str(guest.top / "deep"), "/a/b/c/d"),
        (str(guest.top / "text"), "/a/b/file"),
        (str(guest.top), "/spot/new"),
    ]
    before = sorted(os.walk(guest.root))
    script = "ls /a /a/b /a/b/c; cat /a/b/c/d/file /a/b/file; cd /a/b/c/d/..; pwd; cat ../file; ls -d /spot/new"
    assert answers(guest.traced("/bin/sh", "-c", script))[:2] == (
        0,
        ["/a:", "b", "", "/a/b:", "c", "file", "", "/a/b/c:", "d", "deeptext/a/b/c", "text/spot/new"],
    )
    assert sorted(os.walk(guest.root)) == before


LISTING = """
import os, sys
print([sorted(os.listdir(path)) for path in ("/", "/spot", "/spot/new", "/spot/folder")])
with os.scandir("/spot") as entries:
    print(sorted((entry.name, entry.is_dir(), entry.is_file()) for entry in entries))
os.chdir("/spot")
handle = os.open("folder/..", os.O_RDONLY)
print([sorted(os.listdir(handle)) for _ in range(3)], sorted(os.listdir(".")))
"""


def test_a_listing_shows_the_mount_points_that_the_folder_lacks(tmp_path: Path) -> None:
    """The truth is a mount namespace whose owner has made them first."""
    outputs = []
    for kind in ("truth", "traced"):
        guest = SmallGuest(tmp_path / kind)
        (guest.work / "folder").mkdir()
        (guest.work / "file").touch()
        bound = guest.top / "bound"
        (bound / "inside").mkdir(parents=True)
        text = guest.top / "text"
        text.touch()
        guest.binds += [(str(bound), "/spot/new"), (str(text), "/spot/text"), (str(bound), "/top")]
        if kind == "truth":
            (guest.work / "new").mkdir()
            (guest.work / "text").touch()
            (guest.root / "top").mkdir()
        outputs.append(answers((guest.truth if kind == "truth" else guest.traced)(*PYTHON, LISTING)))
    assert outputs[0][0] == 0, outputs[0]
    assert outputs[1] == outputs[0]
    assert not (tmp_path / "traced" / "root" / "top").exists()


def test_a_listing_read_in_small_pieces_shows_each_name_once(guest: SmallGuest) -> None:
    for n in range(40):
        (guest.work / f"file-{n}").touch()
    (guest.top / "bound").mkdir()
    guest.binds.append((str(guest.top / "bound"), "/spot/new"))
    lines = answers(guest.traced(guest.add(built("small_listing")), "/spot"))
    names = [*(f"folder {name}" for name in ("new", ".", "..")), *(f"file file-{n}" for n in range(40))]
    assert lines == (0, sorted(f"{call} {name}" for name in names for call in ("getdents", "getdents64")), "")


MAPS = """
import os, re, sys
mapped = {}
for name in ("/proc/self/maps", "/proc/self/smaps", f"/proc/{os.getpid()}/task/{os.getpid()}/maps"):
    with open(name) as text:
        lines = [line.split(maxsplit=5) for line in text if re.match("[0-9a-f]+-", line) and "/" in line]
    mapped[name] = {words[5].strip() for words in lines}
print([sorted(files) == sorted(mapped["/proc/self/maps"]) for files in mapped.values()])
print(sorted(mapped["/proc/self/maps"]))
print([path for path in mapped["/proc/self/maps"] if not os.path.exists(path)])
if os.path.exists("/proc/self/numa_maps"):
    print(sorted(set(re.findall("file=(/[^ \\n]+)", open("/proc/self/numa_maps").read()))))
os.chdir("/proc/self"); print(len(open("maps").read()) > 100)
writing = (os.O_WRONLY, os.O_RDWR) if os.access("/proc/self/maps", os.W_OK) else ()
for flags in (*writing, os.O_RDONLY | os.O_DIRECTORY):
    try:
        os.close(os.open("/proc/self/maps", flags))
    except OSError as error:
        print(error.errno)
"""


def test_maps_name_files_as_the_guest_does(guest: SmallGuest) -> None:
    truth = answers(guest.truth(*PYTHON, MAPS))
    assert truth[0] == 0
    assert answers(guest.traced(*PYTHON, MAPS)) == truth


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_who_gave_up_rights_still_reads_the_maps_of_its_own(guest: SmallGuest) -> None:
    script = "import os; os.setgid(54321); os.setuid(54321); print('libc' in open('/proc/self/maps').read())"
    assert answers(guest.traced(*PYTHON, script)) == (0, ["True"], "")


def test_maps_keep_every_address_and_leave_no_file_behind(guest: SmallGuest, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    script = "grep -c 550000010000-.*droiddeck-loader /proc/self/maps; grep -c 550000040000- /proc/self/maps; ls -A /t"
    guest.binds.append((str(tmp_path / "tmp"), "/tmp"))
    done = guest.traced(
        "/bin/sh", "-c", script.replace("/t", "/tmp/*"), environ={"PROOT_TMP_DIR": str(tmp_path / "tmp")}
    )
    assert answers(done) == (0, ["1", "1"], "")


def test_a_mount_points_links_are_followed_in_guest_terms(guest: SmallGuest) -> None:
    (guest.top / "bound").mkdir()
    (guest.top / "bound" / "file").write_text("bound")
    (guest.root / "real").mkdir()
    (guest.root / "link").symlink_to("/real")
    guest.binds.append((str(guest.top / "bound"), "/link/here"))
    assert answers(guest.traced("/bin/cat", "/real/here/file"))[:2] == (0, ["bound"])


def test_a_mount_point_cannot_be_moved_or_removed_nor_what_is_above_it(guest: SmallGuest) -> None:
    (guest.top / "bound").mkdir()
    (guest.root / "above" / "point").mkdir(parents=True)
    guest.binds.append((str(guest.top / "bound"), "/above/point"))
    script = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def exchange(one, other):
    if libc.renameat2(-100, one.encode(), -100, other.encode(), 2) != 0:  # RENAME_EXCHANGE, linux/fs.h
        raise OSError(ctypes.get_errno(), "")
os.mkdir("/spot/folder")
for call, *paths in (
    (os.rename, "/above/point", "/spot/x"), (os.rename, "/above", "/spot/x"), (os.rmdir, "/above/point"),
    (os.rmdir, "/above"), (os.mkdir, "/above/point"), (os.rename, "/spot", "/above/point"),
    (exchange, "/above", "/spot/folder"), (exchange, "/spot/folder", "/above"),
    (exchange, "/spot/folder", "/above/point"), (os.rename, "/spot/folder", "/above"),
):
    try:
        print(call(*paths))
    except OSError as error:
        print(errno.errorcode[error.errno])
"""
    done = answers(guest.traced(*PYTHON, script))
    assert done == (0, ["EBUSY", "EBUSY", "EBUSY", "ENOTEMPTY", "EEXIST", *4 * ["EBUSY"], "ENOTEMPTY"], "")
    assert (guest.top / "bound").is_dir()


def test_the_kernels_identity_agrees_wherever_it_is_asked(guest: SmallGuest) -> None:
    option = r"\Linux\deck\6.1.0-test\#7 TEST\x86_64\home\-1" + "\\"
    script = (
        "uname -snrv; cat /proc/sys/kernel/hostname /proc/sys/kernel/osrelease /proc/sys/kernel/ostype "
        "/proc/sys/kernel/version /proc/sys/kernel/domainname; cut -d'(' -f1 /proc/version; "
        "sed 's/.*#/#/' /proc/version; hostname"
    )
    done = guest.traced("/bin/sh", "-c", script, options=["-k", option])
    assert answers(done)[:2] == (
        0,
        [
            "Linux deck 6.1.0-test #7 TEST", "deck", "6.1.0-test", "Linux", "#7 TEST", "home",
            "Linux version 6.1.0-test ", "#7 TEST", "deck",
        ],
    )  # fmt: skip


def test_a_bare_release_changes_the_release_alone(guest: SmallGuest) -> None:
    done = guest.traced(
        "/bin/sh", "-c", "uname -r; uname -n; cat /proc/sys/kernel/osrelease", options=["--kernel-release=7.7"]
    )
    assert answers(done)[:2] == (0, ["7.7", os.uname().nodename, "7.7"])


SOCKETS = """
import os, socket, sys
os.chdir("/spot")
name = sys.argv[1]
server = socket.socket(socket.AF_UNIX); server.bind(name); server.listen(4)
client = socket.socket(socket.AF_UNIX); client.bind("client"); client.connect(name)
there, peer = server.accept()
print(server.getsockname(), client.getpeername(), peer, there.getsockname(), there.getpeername())
datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); datagram.bind(name + "d")
other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); other.bind("/spot/other")
print(other.sendto(b"1", name + "d"), datagram.recvfrom(9))
print(other.sendmsg([b"22"], [], 0, name + "d"), datagram.recvmsg(9)[0::3])
if os.fork() == 0:
    print(other.sendmsg([b"333"], [], 0, name + "d"), datagram.recvmsg(9)[0::3]); sys.stdout.flush(); os._exit(0)
os.wait()
abstract = socket.socket(socket.AF_UNIX); abstract.bind("\\0abstract" + str(os.getpid()))
print(len(abstract.getsockname()) > 8)
left, right = socket.socketpair(); print(left.getsockname(), right.getpeername())
try:
    socket.socket(socket.AF_UNIX).bind(name)
except OSError as error:
    print(error.errno)
os.unlink(name); os.unlink("client"); os.unlink("other"); os.unlink(name + "d")
print(sorted(os.listdir("/spot")))
"""


def test_many_messages_at_once_each_have_their_senders_name(tmp_path: Path) -> None:
    outputs = []
    # A folder of the host's whose path leads elsewhere in the guest: nothing may come to the socket there.
    (tmp_path / "h").mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as decoy:
        decoy.bind(str(tmp_path / "h" / "s"))
        for kind in ("truth", "traced"):
            guest = SmallGuest(tmp_path / kind)
            program = guest.add(built("many_messages"))
            (guest.top / "bound").mkdir()
            (guest.root / str(tmp_path / "h").lstrip("/")).mkdir(parents=True)
            guest.binds.append((str(guest.top / "bound"), str(tmp_path / "h")))
            command = ("/bin/sh", "-c", f"cd /spot && {program} {tmp_path}/h/s")
            outputs.append(answers((guest.truth if kind == "truth" else guest.traced)(*command)))
        with pytest.raises(BlockingIOError):
            decoy.recv(99)
    assert outputs[0][0] == 0, outputs[0]
    assert outputs[1] == outputs[0]


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize(
    "name", ["/spot/server", "server", "/spot/../spot/./server", "/spot/link", "/spot/" + "s" * 100, "n" * 100]
)
def test_sockets_have_the_names_that_the_guest_gave_them(tmp_path: Path, name: str, deep: bool) -> None:  # noqa: FBT001
    outputs = []
    for kind in ("truth", "traced"):
        top = tmp_path / kind / ("d" * 120) if deep else tmp_path / kind
        top.mkdir(parents=True)
        guest = SmallGuest(top)
        (guest.work / "folder").mkdir()
        outputs.append(answers((guest.truth if kind == "truth" else guest.traced)(*PYTHON, SOCKETS, name)))
    assert outputs[0][0] == 0, outputs[0]
    assert outputs[1] == outputs[0]


SHORT_LIVED_FOLDERS = """
import os, shutil, socket, sys
def bound(folder):
    os.mkdir(folder)
    made = socket.socket(socket.AF_UNIX); made.bind(folder + "/listener")
    return os.listdir(folder), made.getsockname() == folder + "/listener"
print({str(bound(f"/spot/{n:020}")) for n in range(int(sys.argv[1]))})
again = "/spot/" + "a" * 20
for _ in range(2):
    print(bound(again))
    shutil.rmtree(again)
print(bound(again))
os.rename(again, "/spot/moved")
print(bound(again), os.listdir("/spot/moved"))
"""


def test_sockets_can_be_made_in_any_number_of_folders_that_come_and_go(tmp_path: Path) -> None:
    outputs = []
    for kind in ("truth", "traced"):
        top = tmp_path / kind / ("d" * 120)
        top.mkdir(parents=True)
        guest = SmallGuest(top)
        outputs.append(answers((guest.truth if kind == "truth" else guest.traced)(*PYTHON, SHORT_LIVED_FOLDERS, "300")))
    assert outputs[0][0] == 0, outputs[0]
    assert outputs[1] == outputs[0]
