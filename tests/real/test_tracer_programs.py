# SPDX-License-Identifier: GPL-3.0-or-later
"""Real programs under our own tracer, through the command line, with the output that they have without it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from supervised import running

if TYPE_CHECKING:
    import subprocess

    from conftest import CommandLine

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

THREADS = """
import os, subprocess, sys, threading
answers = []
def work(number):
    for _ in range(20):
        os.stat("/usr/bin/env"); os.listdir("/usr/share"); open("/etc/debian_version").read()
    done = subprocess.run(["/bin/sh", "-c", f"exit {number}"])
    answers.append(done.returncode)
workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
[worker.start() for worker in workers]
[worker.join() for worker in workers]
print(sorted(answers))
"""
POOL = """
import multiprocessing, os
def name(path):
    return os.path.realpath(path)
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(4) as pool:
        print(sorted(set(pool.map(name, ["/bin/sh", "/bin", "/proc/self/root/usr"] * 20))))
"""
# Scripts for bash; what they print under the chroot backend is expected.
SCRIPTS = {
    "dpkg -l": "dpkg -l",
    "dpkg --verify": "dpkg --verify coreutils dash; echo $?",
    "tar": (
        "cd /tmp && tar -cf a.tar -C /usr/share/doc . && mkdir out && tar -xf a.tar -C out && "
        "(cd out && find . -type f -exec md5sum {} + | sort -k2) && diff -r /usr/share/doc out && rm -r out a.tar"
    ),
    "find": "find /usr/share /etc -xdev -printf '%p %y %m %s %l\\n' | sort",
    "ls": "ls -lR /usr/lib | md5sum",
    "links and renames": (
        "cd /tmp && mkdir -p a/b && ln -s a/b l && echo x > l/f && mv a c && cat l/f; ln -sfn c/b l && cat l/f && "
        "cp -a c d && rm -r c && ls -R d l; rm -r d l"
    ),
    "here documents and pipes": "for i in 1 2 3; do cat <<E | tr a-z A-Z | sort -r\nline $i\nE\ndone",
    "perl": 'perl -e \'opendir(D, "/usr"); print join(" ", sort readdir D), "\\n"; print -l "/bin" ? 1 : 0\'',
}


def run(cli: CommandLine, backend: str, *words: str, time_limit: float = 120) -> subprocess.CompletedProcess[bytes]:
    return cli("run", "--backend", backend, "--", *words, time_limit=time_limit)


def same(cli: CommandLine, *words: str, time_limit: float = 120) -> bytes:
    """Run a program without and with the tracer; the second must end and print as the first did."""
    truth = run(cli, "chroot", *words, time_limit=time_limit)
    ours = run(cli, "fastpath", *words, time_limit=time_limit)
    assert (ours.returncode, ours.stdout, ours.stderr) == (truth.returncode, truth.stdout, truth.stderr)
    return ours.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_prints_what_it_prints_without_the_tracer(cli: CommandLine, name: str) -> None:
    assert same(cli, "/bin/bash", "-c", SCRIPTS[name])


def test_python_with_threads_and_subprocesses(cli: CommandLine) -> None:
    assert same(cli, "/usr/bin/python3", "-ISB", "-c", THREADS) == b"[0, 1, 2, 3, 4, 5, 6, 7]\n"


def test_python_with_a_pool_of_processes(cli: CommandLine) -> None:
    assert same(cli, "/usr/bin/python3", "-ISB", "-c", POOL) == b"['/usr', '/usr/bin', '/usr/bin/dash']\n"


def test_a_background_process_does_not_outlive_the_session(cli: CommandLine) -> None:
    seconds = f"1000.{os.getpid()}"
    done = run(cli, "fastpath", "/bin/sh", "-c", f"sleep {seconds} & exit 3")
    assert (done.returncode, running("sleep", seconds)) == (3, [])


@pytest.mark.parametrize(("script", "status"), [("kill -9 $$", 137), ("kill -TERM $$", 143), ("exit 42", 42)])
def test_the_status_is_the_main_programs(cli: CommandLine, script: str, status: int) -> None:
    assert run(cli, "fastpath", "/bin/sh", "-c", script).returncode == status


def test_many_short_processes_all_end(cli: CommandLine) -> None:
    script = "i=0; while [ $i -lt 50 ]; do /bin/true & /bin/echo $i | cat; wait; i=$((i+1)); done"
    assert run(cli, "fastpath", "/bin/sh", "-c", script).stdout.split() == [str(n).encode() for n in range(50)]


@pytest.mark.long
def test_five_hundred_bursts_of_threads_and_processes_all_end(cli: CommandLine) -> None:
    script = f"for i in range(500 // 8):\n exec({THREADS!r})"
    done = run(cli, "fastpath", "/usr/bin/python3", "-ISB", "-c", script, time_limit=280)
    assert done.stdout.splitlines() == [b"[0, 1, 2, 3, 4, 5, 6, 7]"] * (500 // 8)
