# SPDX-License-Identifier: GPL-3.0-or-later
"""What breaks under tracers by public reports, and is not a question of one call: each the smallest form of it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from traced import ENVIRON, TIME_LIMIT, SmallGuest, answers

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = ("/usr/bin/python3", "-IS", "-c")


def test_every_link_of_procfs_can_be_asked_for(guest: SmallGuest) -> None:
    script = """
import os
for folder in ("/proc", "/proc/self", "/proc/self/ns", "/proc/self/fd", "/proc/1", "/proc/thread-self"):
    for name in os.listdir(folder):
        for ask in (os.lstat, os.readlink, os.stat):
            try:
                ask(f"{folder}/{name}")
            except OSError:
                pass
print("all")
"""
    assert answers(guest.traced(*PYTHON, script)) == (0, ["all"], "")


def test_two_hundred_binds_are_all_shown(guest: SmallGuest) -> None:
    for number in range(200):
        folder = guest.top / "many" / str(number)
        folder.mkdir(parents=True)
        (folder / "name").write_text(f"{number}\n")
        guest.binds.append((str(folder), f"/many/{number}"))
    done = guest.traced("/bin/sh", "-c", "cat /many/*/name | sort -n")
    assert answers(done) == (0, [str(number) for number in range(200)], "")


def test_more_binds_than_there_is_room_for_are_refused_by_name(guest: SmallGuest) -> None:
    guest.binds += [(str(guest.top), f"/many/{number}") for number in range(2000)]
    done = guest.traced("/bin/true")
    assert (done.returncode, done.stderr.count(b"\n")) == (125, 1)
    assert b"bind" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("/usr/bin/bwrap", "--ro-bind", "/", "/", "/bin/true"), "bwrap: "),
        (("/usr/bin/strace", "-f", "/bin/true"), "Operation not permitted"),
        (("/usr/bin/unshare", "--user", "/bin/true"), "Operation not permitted"),
    ],
)
def test_what_needs_namespaces_or_tracing_fails_at_once_with_its_own_message(
    guest: SmallGuest, words: tuple[str, ...], says: str
) -> None:
    status, _, errors = answers(guest.traced(*words))
    assert status == 1
    assert says in errors


def test_shared_memory_and_semaphores_of_system_v_are_the_hosts(guest: SmallGuest) -> None:
    script = """
use IPC::SysV qw(IPC_PRIVATE IPC_RMID S_IRUSR S_IWUSR); use strict;
my $memory = shmget(IPC_PRIVATE, 64, S_IRUSR | S_IWUSR) // die "shmget: $!";
my $gate = semget(IPC_PRIVATE, 1, 0600) // die "semget: $!";
if (!fork) { shmwrite($memory, "from a child", 0, 12) or die; semop($gate, pack("s3", 0, 1, 0)) or die; exit 0 }
semop($gate, pack("s3", 0, -1, 0)) or die; shmread($memory, my $text, 0, 12) or die; wait; print "$text $?\\n";
shmctl($memory, IPC_RMID, 0); semctl($gate, 0, IPC_RMID, 0);
"""
    assert answers(guest.traced("/usr/bin/perl", "-e", script)) == (0, ["from a child 0"], "")


def test_a_socket_with_a_long_host_path_is_met_from_a_second_tree(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 120)
    folder.mkdir()
    trees = []
    for name in ("server", "client"):
        top = tmp_path / name
        top.mkdir()
        tree = SmallGuest(top)
        (tree.root / "shared").mkdir()
        tree.binds.append((str(folder), "/shared"))
        trees.append(tree)
    serve = """
import socket
server = socket.socket(socket.AF_UNIX); server.bind("/shared/s"); server.listen(1); print("ready", flush=True)
there, _ = server.accept(); there.sendall(there.recv(99).upper()); print(server.getsockname())
"""
    ask = """
import socket
client = socket.socket(socket.AF_UNIX); client.connect("/shared/s"); client.sendall(b"hello")
print(client.recv(99), client.getpeername())
"""
    with subprocess.Popen(trees[0].command(*PYTHON, serve), stdout=subprocess.PIPE, env=ENVIRON) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        assert (folder / "s").is_socket()
        assert answers(trees[1].traced(*PYTHON, ask)) == (0, ["b'HELLO' /shared/s"], "")
        assert running.stdout.read() == b"/shared/s\n"
        assert running.wait(TIME_LIMIT) == 0


# Raw calls by their numbers on x86-64 (asm/unistd_64.h), with addresses where nothing is or ends.
POINTERS = """
import ctypes, errno, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
pages = libc.mmap(None, 3 * 4096, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
libc.munmap(pages + 2 * 4096, 4096)
end = pages + 2 * 4096
def at_end(text):
    ctypes.memmove(end - len(text), text, len(text))
    return end - len(text)
def call(name, number, *words):
    ctypes.set_errno(0)
    said = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(w) if isinstance(w, int) else w for w in words))
    print(name, said if said < 3 else "some", errno.errorcode.get(ctypes.get_errno(), 0))
buffer = ctypes.create_string_buffer(4096)
os.symlink("twelve bytes", "/spot/link")
for bad in (1, 0, end, 1 << 47, -1):
    call("stat", 4, bad, buffer); call("stat into", 4, b"/usr", bad); call("open", 2, bad, 0, 0)
    call("openat", 257, -100, bad, 0, 0); call("access", 21, bad, 0); call("readlink", 89, bad, buffer, 99)
    call("readlink into", 89, b"/spot/link", bad, 99); call("statx", 332, -100, bad, 0, 0x7FF, buffer)
    call("statx into", 332, -100, b"/usr", 0, 0x7FF, bad); call("getcwd", 79, bad, 4096); call("chdir", 80, bad)
    call("mkdir", 83, bad, 0); call("rename", 82, bad, b"/spot/x"); call("rename to", 82, b"/spot/link", bad)
    call("execve", 59, bad, 0, 0); call("execve words", 59, b"/usr/bin/env", bad, 0)
    call("utimensat", 280, -100, bad, 0, 0); call("utimensat fd", 280, 0, bad, 0, 0)
    call("newfstatat empty", 262, 0, bad, buffer, 0x1000); call("connect", 42, 0, bad, 20); call("uname", 63, bad)
    call("getxattr", 191, bad, b"user.x", buffer, 9); call("symlink", 88, bad, b"/spot/y")
    call("statfs", 137, bad, buffer)
for text in (b"/spot/link", b"/usr\\0"):
    call("unended" if text[-1] else "ended", 4, at_end(text), buffer)
for room in (11, 12, 13, 0, -1):
    call(f"readlink room {room}", 89, b"/spot/link", buffer, room)
call("readlink to the end", 89, b"/spot/link", end - 12, 12)
call("readlink beyond", 89, b"/spot/link", end - 11, 12)
print(os.readlink("/spot/link"))
"""


def test_bad_addresses_are_answered_and_never_touched(tmp_path: Path) -> None:
    said = []
    for kind in ("truth", "traced"):
        (tmp_path / kind).mkdir()
        guest = SmallGuest(tmp_path / kind)
        said.append(answers((guest.truth if kind == "truth" else guest.traced)(*PYTHON, POINTERS)))
    assert said[0][0] == 0, said[0]
    assert said[1] == said[0]
