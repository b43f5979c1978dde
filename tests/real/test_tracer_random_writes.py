# SPDX-License-Identifier: GPL-3.0-or-later
"""Random sequences of changes under the tracer and in the kernel's truth: each answer, and the trees that are left.

One step prepares the next: a folder that was renamed while it was held, a link that now leads into a bind, a working
directory that is gone. `verify` asks each question on a fresh tree; here nothing is ever fresh.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from program_guests import described
from traced import SmallGuest, answers

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

# Takes its steps as JSON; prints one answer a line. Descriptors of folders are held under numbers of their own.
PROGRAM = r"""
import ctypes, errno, json, os, stat, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
held = {}
def renameat2(first, second, at, flags):
    if libc.renameat2(at, os.fsencode(first), at, os.fsencode(second), flags):
        raise OSError(ctypes.get_errno(), "renameat2")
def write(path, text, at, flags):
    made = os.open(path, os.O_WRONLY | os.O_NONBLOCK | flags, 0o640, dir_fd=at)
    os.write(made, text.encode())
    os.close(made)
def read(path, at):
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK, dir_fd=at)
    try:
        return sorted(os.listdir(opened)) if stat.S_ISDIR(os.fstat(opened).st_mode) else os.read(opened, 99).decode()
    finally:
        os.close(opened)
def look(path, at):
    found = os.lstat(path, dir_fd=at)
    return stat.filemode(found.st_mode), found.st_nlink if not stat.S_ISDIR(found.st_mode) else 0
def hold(path, at, number):
    if number in held:
        os.close(held.pop(number))
    held[number] = os.open(path, os.O_PATH | os.O_DIRECTORY, dir_fd=at)
def where(*_):
    return os.getcwd(), os.readlink("/proc/self/cwd")
def in_thread(call):
    said = []
    worker = threading.Thread(target=lambda: said.append(tried(call)))
    worker.start(); worker.join()
    return said[0]
def in_child(call):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, str(tried(call)).encode()); os._exit(0)
    os.close(writer)
    said = os.read(reader, 4096).decode()
    os.close(reader); os.waitpid(child, 0)
    return said
def tried(call):
    try:
        return call()
    except OSError as error:
        return errno.errorcode[error.errno]
OPS = {
    "mkdir": lambda p, q, at, n: os.mkdir(p, 0o751, dir_fd=at),
    "rmdir": lambda p, q, at, n: os.rmdir(p, dir_fd=at),
    "unlink": lambda p, q, at, n: os.unlink(p, dir_fd=at),
    "write": lambda p, q, at, n: write(p, f"text {n}", at, os.O_CREAT | os.O_TRUNC),
    "write new": lambda p, q, at, n: write(p, f"new {n}", at, os.O_CREAT | os.O_EXCL),
    "append": lambda p, q, at, n: write(p, f"+{n}", at, os.O_APPEND),
    "write nofollow": lambda p, q, at, n: write(p, f"nofollow {n}", at, os.O_CREAT | os.O_NOFOLLOW),
    "rename": lambda p, q, at, n: os.rename(p, q, src_dir_fd=at, dst_dir_fd=at),
    "rename new": lambda p, q, at, n: renameat2(p, q, at, 1),
    "exchange": lambda p, q, at, n: renameat2(p, q, at, 2),
    "link": lambda p, q, at, n: os.link(p, q, src_dir_fd=at, dst_dir_fd=at, follow_symlinks=bool(n % 2)),
    # No slash at its end: what open(O_CREAT) makes of a link to itself with one is known to differ (EISDIR, ELOOP).
    "symlink": lambda p, q, at, n: os.symlink(q.rstrip("/"), p, dir_fd=at),
    "read": lambda p, q, at, n: read(p, at),
    "look": lambda p, q, at, n: look(p, at),
    "readlink": lambda p, q, at, n: os.readlink(p, dir_fd=at),
    "truncate": lambda p, q, at, n: os.truncate(p, n % 7),
    "chmod": lambda p, q, at, n: os.chmod(p, 0o700 | n % 64, dir_fd=at),
    "utime": lambda p, q, at, n: os.utime(p, (n, n), dir_fd=at, follow_symlinks=bool(n % 2)),
    "fifo": lambda p, q, at, n: os.mkfifo(p, dir_fd=at),
    "chdir": lambda p, q, at, n: os.chdir(p),
    "where": where,
    "hold": lambda p, q, at, n: hold(p, at, n % 3),
}
os.umask(0)
os.chdir("/spot")
def known_to_differ(*paths): # through procfs from a removed working directory: which of two errors it is
    return any("/proc/self/cwd" in path for path in paths) and tried(os.getcwd) == "ENOENT"
for name, path, other, at, way, number in json.loads(sys.argv[1]):
    if known_to_differ(path, other):
        continue
    folder = held.get(at, -100)  # AT_FDCWD of linux/fcntl.h
    ways = {"here": tried, "thread": in_thread, "child": in_child}
    print(name, path, other, at, ways[way](lambda: OPS[name](path, other, folder, number)))
"""
CALLS = (
    "mkdir", "rmdir", "unlink", "write", "write new", "append", "write nofollow", "rename", "rename new", "exchange",
    "link", "symlink", "read", "look", "readlink", "truncate", "chmod", "utime", "fifo", "chdir", "where", "hold",
)  # fmt: skip
NAMES = ("a", "b", "c", "l", "bound", "point", "inner", "..", ".")
# No mount point lies in a folder that can be renamed: the kernel's mounts would go along, which the tracer refuses.
BOUND = {"bound": "spot/bound", "other": "spot/point", "nested": "spot/bound/inner"}
paths = st.builds(
    lambda start, names, end: start + "/".join(names) + end,
    st.sampled_from(["", "", "", "/spot/", "/spot/bound/", "/spot/a/", "/proc/self/cwd/"]),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3),
    st.sampled_from(["", "", "", "", "/", "/."]),
)
# Times are told where they are old: what utime set.
steps = st.tuples(
    st.sampled_from(CALLS), paths, paths, st.none() | st.integers(0, 2),
    st.sampled_from(["here", "here", "here", "thread", "child"]), st.integers(0, 1000),
)  # fmt: skip
Steps = list[tuple[str, str, str, int | None, str, int]]


def ended(top: Path, sequence: Steps, *, traced: bool) -> tuple[tuple[int, list[str], str], list[str]]:
    """Take the steps in a new tree with two binds, and tell what they answered and what is left."""
    top.mkdir()
    guest = SmallGuest(top)
    for host, point in BOUND.items():
        (top / host / "b").mkdir(parents=True)
        (top / host / "c").write_text(host)
        guest.binds.append((str(top / host), f"/{point}"))
    for point in ("root/spot/bound", "root/spot/point", "bound/inner", "root/spot/a"):
        (top / point).mkdir()
    (guest.work / "l").symlink_to("/spot/bound/b")
    words = ("/usr/bin/python3", "-ISB", "-c", PROGRAM, json.dumps(sequence))
    done = answers(guest.traced(*words) if traced else guest.truth(*words))
    return done, [line for folder in (guest.work, *(top / host for host in BOUND)) for line in tree(folder)]


def tree(folder: Path) -> list[str]:
    return list(described(folder, since=10_000))


def check(sequence: Steps) -> None:
    top = Path(mkdtemp(prefix="random-writes-"))
    try:
        truth = ended(top / "truth", sequence, traced=False)
        assert truth[0][0] == 0, truth
        assert ended(top / "traced", sequence, traced=True) == truth
    finally:
        shutil.rmtree(top)


CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=60, deadline=None, suppress_health_check=CHECKS)
@given(st.lists(steps, min_size=20, max_size=80))
def test_a_random_sequence_of_changes_answers_and_leaves_what_it_does_in_the_kernel(sequence: Steps) -> None:
    check(sequence)


@pytest.mark.long
@settings(max_examples=1500, deadline=None, suppress_health_check=CHECKS)
@given(st.lists(steps, min_size=20, max_size=150))
def test_random_sequences_at_length(sequence: Steps) -> None:
    check(sequence)
