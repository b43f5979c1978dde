# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolver in procfs: links that say one thing to the kernel and another to a guest."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from resolver_drivers import SANITIZED, Resolver, encoded

if TYPE_CHECKING:
    from collections.abc import Iterator

ME = os.getpid()


class Guest:
    """This process plays the guest: its cwd, descriptors and threads are looked at through /proc."""

    def __init__(self, top: Path, resolver: Resolver) -> None:
        self.top = top
        self.resolver = resolver
        (top / "root/usr/bin").mkdir(parents=True)
        (top / "root/proc").mkdir()
        (top / "root/usr/bin/program").write_text("x")
        (top / "beside/sub").mkdir(parents=True)
        resolver.bind(str(top / "root"), "")
        resolver.bind(str(top / "beside"), "/mnt")
        resolver.bind("/proc", "/proc")
        resolver.ask("process", ME, ME)
        resolver.ask("exe", ME, encoded("/usr/bin/program"))

    def read_link(self, path: str) -> bytes | str:
        found = self.resolver.resolve(path, "nofollow")
        assert found.error == ""
        return self.resolver.read_link(found.host)


@pytest.fixture(params=[(), SANITIZED], ids=["plain", "sanitized"])
def guest(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Guest]:
    with Resolver(*request.param) as resolver:
        yield Guest(tmp_path, resolver)


@contextlib.contextmanager
def opened(path: Path | str, how: int = os.O_RDONLY) -> Iterator[int]:
    descriptor = os.open(path, how)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def test_self_and_thread_self_are_whoever_asks(guest: Guest) -> None:
    assert guest.resolver.resolve("/proc/self").host == f"/proc/{ME}".encode()
    assert guest.resolver.resolve("/proc/self/stat").host == f"/proc/{ME}/stat".encode()
    assert guest.resolver.resolve("/proc/self", "nofollow").host == b"/proc/self"
    assert guest.read_link("/proc/self") == str(ME).encode()
    guest.resolver.ask("process", 4321, 1234)
    assert guest.read_link("/proc/self") == b"1234"
    assert guest.read_link("/proc/thread-self") == b"1234/task/4321"


def test_a_path_through_procfs_is_nobody_elses(guest: Guest) -> None:
    for path in ("/proc/self", "/proc/self/root/usr", f"/proc/{ME}/fd", "/proc/version", "/proc/mounts"):
        assert "caller_dependent" in guest.resolver.resolve(path).flags, path
    assert "caller_dependent" not in guest.resolver.resolve("/usr").flags


def test_exe_is_the_guests_program(guest: Guest) -> None:
    for path in ("/proc/self/exe", f"/proc/{ME}/exe", "/proc/thread-self/exe", f"/proc/{ME}/task/{ME}/exe"):
        assert guest.read_link(path) == b"/usr/bin/program", path
        assert guest.resolver.resolve(path).host == os.fsencode(guest.top / "root/usr/bin/program"), path


def test_exe_of_a_process_that_is_no_guest_is_the_kernels(guest: Guest) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        found = guest.resolver.resolve(f"/proc/{other.pid}/exe")
        assert found.host == f"/proc/{other.pid}/exe".encode()
        assert "magic" in found.flags
        assert guest.read_link(f"/proc/{other.pid}/exe") == os.fsencode(Path(f"/proc/{other.pid}/exe").readlink())
        assert "magic" in guest.resolver.resolve(f"/proc/{other.pid}/root").flags
        other.kill()


def test_root_is_the_guests_root(guest: Guest) -> None:
    assert guest.read_link("/proc/self/root") == b"/"
    assert guest.resolver.resolve("/proc/self/root").host == os.fsencode(guest.top / "root")
    assert guest.resolver.resolve("/proc/self/root/mnt/sub").host == os.fsencode(guest.top / "beside/sub")


def test_cwd_is_in_guest_terms(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(guest.top / "beside/sub")
    assert guest.read_link("/proc/self/cwd") == b"/mnt/sub"
    found = guest.resolver.resolve("/proc/self/cwd/../..")
    assert found.guest == b""
    monkeypatch.chdir("/")
    assert guest.read_link("/proc/self/cwd") == b"/"
    assert "outside" in guest.resolver.resolve("/proc/self/cwd").flags


def test_a_removed_cwd_keeps_its_mark(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(guest.top / "beside/sub")
    (guest.top / "beside/sub").rmdir()
    assert guest.read_link("/proc/self/cwd") == b"/mnt/sub (deleted)"
    found = guest.resolver.resolve("/proc/self/cwd")
    assert found.host == f"/proc/{ME}/cwd".encode()
    assert "magic" in found.flags
    assert guest.resolver.resolve("/proc/self/cwd/x/y").error == "ENOENT"
    assert guest.resolver.look("/proc/self/cwd/..").startswith(f"{(guest.top / 'beside').stat().st_dev:x}:")


def test_a_file_that_only_looks_removed_is_there(guest: Guest) -> None:
    (guest.top / "beside/x (deleted)").mkdir()
    with opened(guest.top / "beside/x (deleted)") as descriptor:
        assert guest.read_link(f"/proc/self/fd/{descriptor}") == b"/mnt/x (deleted)"
        assert guest.resolver.resolve(f"/proc/self/fd/{descriptor}/y").guest == b"/mnt/x (deleted)/y"


def test_an_open_file_is_left_to_the_kernel_and_named_in_guest_terms(guest: Guest) -> None:
    with opened(guest.top / "root/usr/bin/program") as descriptor:
        found = guest.resolver.resolve(f"/proc/self/fd/{descriptor}")
        assert found.host == f"/proc/{ME}/fd/{descriptor}".encode()
        assert "magic" in found.flags
        assert guest.read_link(f"/proc/self/fd/{descriptor}") == b"/usr/bin/program"
        slash = guest.resolver.resolve(f"/proc/self/fd/{descriptor}/")
        assert slash.host.endswith(f"/fd/{descriptor}/".encode())
        assert guest.resolver.look(f"/proc/self/fd/{descriptor}/") == "ENOTDIR"
        (guest.top / "root/usr/bin/program").unlink()
        assert guest.read_link(f"/proc/self/fd/{descriptor}") == b"/usr/bin/program (deleted)"
        assert ":" in guest.resolver.look(f"/proc/self/fd/{descriptor}")


def test_below_an_open_directory_the_walk_goes_on_in_the_guest(guest: Guest) -> None:
    (guest.top / "beside/link").symlink_to("/usr")
    with opened(guest.top / "beside") as descriptor:
        at = f"/proc/self/fd/{descriptor}"
        assert guest.resolver.resolve(f"{at}/sub").host == os.fsencode(guest.top / "beside/sub")
        assert guest.resolver.resolve(f"{at}/link").host == os.fsencode(guest.top / "root/usr")
        assert guest.resolver.resolve(f"{at}/../usr").host == os.fsencode(guest.top / "root/usr")
        assert guest.resolver.resolve(f"{at}/new", "parent").host == os.fsencode(guest.top / "beside/new")


def test_pipes_and_namespaces_are_descriptions(guest: Guest) -> None:
    ends = os.pipe()
    try:
        path = f"/proc/self/fd/{ends[0]}"
        assert str(guest.read_link(path), "ascii").startswith("pipe:[")  # type: ignore[arg-type]
        assert "magic" in guest.resolver.resolve(path).flags
        assert guest.resolver.resolve(f"{path}/x").error == "ENOTDIR"
        assert guest.resolver.resolve(f"{path}/..").error == "ENOTDIR"
    finally:
        for end in ends:
            os.close(end)
    assert guest.read_link("/proc/self/ns/mnt") == os.fsencode(Path("/proc/self/ns/mnt").readlink())
    assert "magic" in guest.resolver.resolve("/proc/self/ns/mnt").flags
    mapped = next(Path("/proc/self/map_files").iterdir()).name
    assert "magic" in guest.resolver.resolve(f"/proc/self/map_files/{mapped}").flags


def test_a_threads_own_folder_is_its_own(guest: Guest) -> None:
    release, started, tids = threading.Event(), threading.Event(), []

    def wait() -> None:
        tids.append(threading.get_native_id())
        started.set()
        release.wait(30)

    thread = threading.Thread(target=wait)
    thread.start()
    started.wait(30)
    try:
        guest.resolver.ask("process", tids[0], ME)
        found = guest.resolver.resolve("/proc/thread-self/comm")
        assert found.host == f"/proc/{ME}/task/{tids[0]}/comm".encode()
        assert guest.read_link("/proc/thread-self/root") == b"/"
        assert guest.read_link(f"/proc/{tids[0]}/cwd") == os.fsencode(Path.cwd())
    finally:
        release.set()
        thread.join()


def test_relative_links_of_procfs_lead_through_self(guest: Guest) -> None:
    assert guest.resolver.resolve("/proc/mounts").host == f"/proc/{ME}/mounts".encode()
    assert guest.resolver.resolve("/proc/net").host == f"/proc/{ME}/net".encode()


def test_a_folder_at_proc_that_is_no_procfs_has_plain_links(guest: Guest) -> None:
    fake = guest.top / "fake"
    (fake / "1234").mkdir(parents=True)
    (fake / "self").symlink_to("1234")
    guest.resolver.bind(str(fake), "/proc")
    assert guest.resolver.resolve("/proc/self").host == os.fsencode(fake / "1234")
    guest.resolver.bind("/proc", "/proc")
    guest.resolver.ask("procfs", 0)
    assert guest.resolver.resolve("/proc/self").host != f"/proc/{ME}".encode()


def test_a_bind_below_proc_counts_there_too(guest: Guest) -> None:
    guest.resolver.bind(str(guest.top / "beside"), "/proc/driver")
    assert guest.resolver.resolve("/proc/driver/sub").host == os.fsencode(guest.top / "beside/sub")
    assert guest.resolver.resolve("/proc/driver/..").host == b"/proc/"


def test_a_walk_may_start_at_the_magic_link_itself(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(guest.top / "beside")
    (guest.top / "beside/link").symlink_to("/usr")
    cwd = f"/proc/{ME}/cwd"
    assert guest.resolver.resolve("sub/x", base=cwd).host == f"{cwd}/sub/x".encode()
    assert guest.resolver.resolve("link", base=cwd).host == os.fsencode(guest.top / "root/usr")
    found = guest.resolver.resolve("sub/..", base=cwd)
    assert found.host == f"{cwd}/sub/../".encode()
    assert "outside" in found.flags


@pytest.mark.parametrize(
    "path", ["/proc/self/fdx", "/proc/1x/exe", "/proc/self/task/x/exe", "/proc/99999999999999/exe", "/proc/selfie"]
)
def test_what_only_looks_like_a_link_of_procfs_is_not_there(guest: Guest, path: str) -> None:
    assert guest.resolver.look(path) == "ENOENT"
