# SPDX-License-Identifier: GPL-3.0-or-later
"""Emulated ids: what a guest is told about itself and its files, as a user namespace would tell it."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from traced import ENVIRON, TIME_LIMIT, TRACER, SmallGuest, answers

PYTHON = ("/usr/bin/python3", "-S", "-c")
STRANGER = 54321  # nobody's uid


def as_stranger(guest: SmallGuest, *argv: str, options: tuple[str, ...] = ()) -> tuple[int, list[str], str]:
    """Run under a tracer that is an ordinary user's."""
    if os.geteuid() != 0:
        return answers(guest.traced(*argv, options=options))
    for folder in (guest.top, *guest.top.parents):
        if folder.stat().st_uid == 0 and folder.parts[1:2] == ("tmp",) and len(folder.parts) > 2:
            folder.chmod(0o755)
    os.chown(guest.work, STRANGER, STRANGER)
    command = guest.command(*argv, options=options)
    # The build may lie where only its owner may go.
    for name in ("droiddeck-tracer", "droiddeck-loader"):
        shutil.copy(TRACER.parent / name, guest.top / name)
    command[0] = str(guest.top / TRACER.name)
    done = subprocess.run(
        command, capture_output=True, timeout=TIME_LIMIT, env=ENVIRON, user=STRANGER, group=STRANGER, extra_groups=[],
        cwd="/", check=False,
    )  # fmt: skip
    return answers(done)


ASK = """
import os, socket, struct
print(os.getuid(), os.geteuid(), os.getgid(), os.getegid(), os.getresuid(), os.getresgid(), os.getgroups())
open("/spot/own", "w").close()
for path in ("/spot/own", "/usr/bin/env"):
    print(os.stat(path).st_uid, os.stat(path).st_gid, os.lstat(path).st_uid)
file = open("/spot/own"); print(os.fstat(file.fileno()).st_uid, os.stat("own", dir_fd=os.open("/spot", 0)).st_uid)
left, right = socket.socketpair()
print(struct.unpack("3i", left.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1:], flush=True)
os.system("stat -c %u:%g /spot/own; stat -c %u:%g - </spot/own")  # statx
"""


def test_without_the_option_the_ids_are_the_real_ones(guest: SmallGuest) -> None:
    assert as_stranger(guest, *PYTHON, "import os; print(os.getuid(), os.getgid())")[1] == [
        f"{STRANGER} {STRANGER}" if os.geteuid() == 0 else f"{os.getuid()} {os.getgid()}"
    ]


@pytest.mark.parametrize(("options", "uid", "gid"), [(("-0",), 0, 0), (("-i", "1000:100"), 1000, 100)])
def test_a_guest_is_who_it_is_told_to_be(guest: SmallGuest, options: tuple[str, ...], uid: int, gid: int) -> None:
    status, lines, errors = as_stranger(guest, *PYTHON, ASK, options=options)
    assert (status, errors) == (0, "")
    assert lines == [
        f"{uid} {uid} {gid} {gid} ({uid}, {uid}, {uid}) ({gid}, {gid}, {gid}) [{gid}]",
        f"{uid} {gid} {uid}", "0 0 0", f"{uid} {uid}", f"({uid}, {gid})", *2 * [f"{uid}:{gid}"],
    ]  # fmt: skip


DROP = """
import os
def tried(call, *words):
    try:
        return call(*words)
    except OSError as error:
        return error.errno
print(tried(os.setgroups, [7, 8]), os.getgroups())
print(tried(os.setresgid, 7, 7, 7), tried(os.setresuid, 5, 6, 7), os.getresuid(), os.getresgid())
print(tried(os.seteuid, 5), tried(os.seteuid, 0), tried(os.setuid, 0), tried(os.setgroups, []), end=" ")
print(os.getresuid(), flush=True)
if os.fork() == 0:
    print(os.getresuid(), os.getgroups(), flush=True)
    os.execv("/bin/sh", ["sh", "-c", "id -u; id -g; id -ru"])
os.wait()
print(tried(os.setreuid, -1, 7), tried(os.setuid, 6), os.getresuid())
"""


def test_a_root_that_gives_up_its_ids_cannot_get_them_back(guest: SmallGuest) -> None:
    status, lines, errors = as_stranger(guest, *PYTHON, DROP, options=("-0",))
    assert (status, errors) == (0, "")
    assert lines == [
        "None [7, 8]", "None None (5, 6, 7) (7, 7, 7)", "None 1 1 1 (5, 5, 7)",
        "(5, 5, 7) [7, 8]", "5", "7", "5", "None 1 (5, 7, 7)",
    ]  # fmt: skip


OWN = """
import os
def tried(call, *words, **more):
    try:
        return call(*words, **more)
    except OSError as error:
        return error.errno
open("/spot/own", "w").close()
print(tried(os.chown, "/spot/own", 5, 6), tried(os.chown, "/not/there", 5, 6), tried(os.chown, "/spot/own", -1, -1))
print(tried(os.fstat, 99), tried(os.fchown, 99, 0, 0))
print(tried(os.chown, "own", os.getuid(), os.getgid(), dir_fd=os.open("/spot", 0)), tried(os.fchown, 1, 5, 5))
"""


def test_root_may_give_files_away_in_word_and_others_may_not(guest: SmallGuest) -> None:
    assert as_stranger(guest, *PYTHON, OWN, options=("-0",))[1] == ["None 2 None", "9 9", "None None"]
    assert as_stranger(guest, *PYTHON, OWN, options=("-i", "1000:1000"))[1] == ["1 2 None", "9 9", "None 1"]
    if os.geteuid() == 0:
        assert (guest.work / "own").stat().st_uid == STRANGER


@pytest.mark.parametrize(("options", "answer"), [((), 1), (("-0",), None), (("-i", "1000:1000"), 1)])
def test_only_root_may_change_its_root(guest: SmallGuest, options: tuple[str, ...], answer: int | None) -> None:
    script = """
import os
try:
    print(os.chroot("/"))
except OSError as error:
    print(error.errno)
"""
    assert as_stranger(guest, *PYTHON, script, options=options) == (0, [str(answer)], "")


def test_many_forks_at_once_inherit_the_ids_of_their_parents(guest: SmallGuest) -> None:
    script = """
import os
os.setresgid(9, 9, 9); os.setresuid(9, 9, 9)
for n in range(60):
    if os.fork() == 0:
        os._exit(os.getuid() != 9 or os.getegid() != 9 or os.fork() == 0 and os._exit(0))
print(sum(os.wait()[1] for n in range(60)))
"""
    assert as_stranger(guest, *PYTHON, script, options=("-0",)) == (0, ["0"], "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_a_query_of_who_gave_up_rights_is_answered_with_what_is_left(guest: SmallGuest) -> None:
    secret = guest.work / "secret"
    secret.mkdir(mode=0o700)
    (secret / "file").write_text("x")
    for folder in guest.top.parents:
        if len(folder.parts) > 2:
            folder.chmod(0o755)
    guest.top.chmod(0o755)
    script = """
import os
def tried(call, *words):
    try:
        return call(*words) is not None
    except OSError as error:
        return error.errno
look = lambda: [tried(os.stat, "/spot/secret/file"), os.access("/spot/secret/file", 4), os.access("/spot/secret", 1)]
print(look())
os.seteuid(54321)
print(look())
os.seteuid(0)
print(look())
os.setresuid(54321, 54321, 54321)
print(look(), flush=True)
if os.fork() == 0:
    print(look(), flush=True); os._exit(0)
os.wait()
"""
    truth = answers(guest.truth(*PYTHON, script))
    assert truth[0] == 0
    assert answers(guest.traced(*PYTHON, script)) == truth


MADE_BY_THREADS = """
import ctypes, os, threading
libc = ctypes.CDLL(None)
SETRESUID = {"x86_64": 117, "aarch64": 147}[os.uname().machine]  # asm/unistd.h: the calling thread's alone
wrong = []
def fork_and_ask(uid):
    for _ in range(100):
        libc.syscall(SETRESUID, uid, uid, 0)
        child = os.fork()
        if child == 0:
            os._exit(os.getuid() != uid)
        libc.syscall(SETRESUID, 9, 9, 0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            wrong.append(uid)
        libc.syscall(SETRESUID, 0, 0, 0)
threads = [threading.Thread(target=fork_and_ask, args=(uid,)) for uid in (0, 5, 6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(wrong)
"""


def test_a_child_has_the_ids_of_the_thread_that_made_it(guest: SmallGuest) -> None:
    assert as_stranger(guest, *PYTHON, MADE_BY_THREADS, options=("-0",)) == (0, ["[]"], "")


# Each round: calls at random from one state, what each said and what the ids are then; at last what exec makes of them.
LAWS = """
import ctypes, os, random
libc = ctypes.CDLL(None)
CALLS = [(os.setuid, 1), (os.setgid, 1), (os.setreuid, 2), (os.setregid, 2), (os.setresuid, 3), (os.setresgid, 3),
         (libc.setfsuid, 1), (libc.setfsgid, 1)]
def ids():
    return os.getresuid(), os.getresgid(), os.getgroups(), libc.setfsuid(-1), libc.setfsgid(-1)
def owned(name):
    said = []
    for uid, gid in ((-1, -1), (-1, 7), (-1, 8), (-1, 9), (5, -1)):
        try:
            said.append(os.chown(name, uid, gid))
        except OSError as error:
            said.append(error.errno)
    return said
def drawn(dice):
    call, count = dice.choice(CALLS)
    try:
        return call.__name__, call(*(dice.choice((-1, 0, 5, 6, 7)) for _ in range(count)))
    except OSError as error:
        return call.__name__, error.errno
for number in range(150):
    if os.fork() == 0:
        dice = random.Random(number)
        os.setgroups([7, 8]); os.setresgid(*dice.sample((5, 6, 7), 3)); os.setresuid(*dice.sample((0, 0, 5, 6), 3))
        print(number, ids(), *((*drawn(dice), *ids()) for _ in range(8)), sep="\\n ", flush=True)
        if number % 10:
            os._exit(0)
        os.execv("/usr/bin/python3", ["python3", "-S", "-c", "import os; print(os.getresuid(), os.getresgid())"])
    os.wait()
os.setgroups([7]); os.setresgid(8, 8, 8); os.setresuid(5, 5, 5)
open("/open/file", "w").close()
print(owned("/open/file"))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="the truth is root's real ids")
def test_every_change_of_ids_is_answered_and_kept_as_by_the_kernel(guest: SmallGuest) -> None:
    (guest.root / "open").mkdir()
    (guest.root / "open").chmod(0o777)
    truth = answers(guest.truth(*PYTHON, LAWS))
    (guest.root / "open" / "file").unlink()
    assert truth[0] == 0, truth
    assert as_stranger(guest, *PYTHON, LAWS, options=("-0",)) == truth
