# SPDX-License-Identifier: GPL-3.0-or-later
"""The native confinement probe: that it sees what is there, and calls an escape what is one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
PROBE = ROOT / "build" / os.uname().machine / "confinement-probe"
# Calls that an unprivileged user is refused before any path is looked up.
PRIVILEGED = {"fspick"}
# Calls that tell the file's identity; the others only tell whether the path is there.
TELL_IDENTITY = {
    "libc:stat", "libc:lstat", "libc:open",
    "openat", "openat2", "open_tree", "open_tree_attr", "newfstatat", "statx",
}  # fmt: skip
# Newer than the oldest kernel that the tests run on.
MAY_BE_MISSING = {"fchmodat2", "getxattrat", "listxattrat", "open_tree_attr", "file_getattr"}


def ask(*words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PROBE, *words], capture_output=True, timeout=30, check=False, **options)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Three places of a host: two that stand for the guest's, one for the host's own."""
    made = tuple(tmp_path / name for name in ("guest", "bound", "host"))
    for place in made:
        place.write_text(f"content of {place.name}")
        place.chmod(0o644)
        Path(f"{place}.link").symlink_to("x")
        shutil.copy(PROBE, f"{place}.program")
    return made  # type: ignore[return-value]


def described(place: Path) -> str:
    found = place.stat()
    return f"{found.st_dev}:{found.st_ino}:{place}"


def calls(*words: str) -> dict[str, str]:
    verdicts: dict[str, str] = json.loads(ask("look", *words).stdout)["calls"]
    return {
        name: verdict
        for name, verdict in verdicts.items()
        if not (name in PRIVILEGED and os.geteuid() != 0) and not (name in MAY_BE_MISSING and verdict == "ENOSYS")
    }


def test_where_the_guests_files_are_there_and_the_hosts_are_not_every_call_is_right(
    places: tuple[Path, Path, Path],
) -> None:
    guest, bound, _ = places
    verdicts = calls(described(guest), described(bound), "/not/there")
    assert verdicts == dict.fromkeys(verdicts, "ok")
    assert len(verdicts) >= 20


def test_where_a_file_of_the_host_is_there_every_call_escapes(places: tuple[Path, Path, Path]) -> None:
    guest, bound, host = places
    verdicts = calls(described(guest), described(bound), str(host))
    assert verdicts == dict.fromkeys(verdicts, "escape")


@pytest.mark.parametrize("missing", [0, 1])
def test_where_a_file_of_the_guest_is_missing_every_call_escapes(places: tuple[Path, Path, Path], missing: int) -> None:
    words = [described(places[0]), described(places[1]), "/not/there"]
    words[missing] = "1:1:/not/there/either"
    verdicts = calls(*words)
    assert verdicts == dict.fromkeys(verdicts, "escape")


def test_another_file_in_the_stead_of_the_guests_is_an_escape(places: tuple[Path, Path, Path]) -> None:
    guest, bound, host = places
    wrong = described(host).replace(str(host), str(guest))
    verdicts = calls(wrong, described(bound), "/not/there")
    assert {name for name, verdict in verdicts.items() if verdict == "escape"} == TELL_IDENTITY & verdicts.keys()


def test_a_call_that_a_filter_answers_with_enosys_leaks_nothing(places: tuple[Path, Path, Path]) -> None:
    guest, bound, host = places
    deny = r"""
import ctypes, os, struct, sys
statements = ((0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7FFF0000))
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in statements))
class Fprog(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
filter = Fprog(len(statements), ctypes.addressof(text))
assert libc.prctl(22, 2, ctypes.byref(filter), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""
    words = [sys.executable, "-c", deny, str(PROBE), "look", described(guest), described(bound), str(host)]
    done = subprocess.run(words, capture_output=True, timeout=30, check=True)
    verdicts = json.loads(done.stdout)["calls"]
    assert (verdicts["openat2"], verdicts["openat"]) == ("ENOSYS", "escape")


def test_it_sees_arguments_environment_folder_kernel_and_ids_exactly(
    places: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    words = ["look", described(places[0]), described(places[1]), "/x", "", "a b", "n\nl", "\udcff"]
    environment = {"EMPTY": "", "BYTE": "\udcff", "EQUALS": "a=b"}
    document = json.loads(ask(*words, env=environment, cwd=tmp_path).stdout)

    def texts(name: str) -> list[str]:
        return [os.fsdecode(bytes.fromhex(word)) for word in document[name]]

    assert texts("arguments") == [str(PROBE), *words]
    assert texts("environment") == [f"{name}={value}" for name, value in environment.items()]
    assert texts("cwd") == [str(tmp_path)]
    assert texts("uname")[:5] == list(os.uname())
    assert document["ids"] == [os.getuid(), os.geteuid(), os.getgid(), os.getegid()]
    assert bytes.fromhex(document["content"]) == b"content of guest"


def test_seen_tells_identity_or_error(places: tuple[Path, Path, Path]) -> None:
    found = places[0].stat()
    seen = json.loads(ask("seen", str(places[0]), "/not/there").stdout)["seen"]
    assert seen == [[0, found.st_dev, found.st_ino], [2, 0, 0]]


@pytest.mark.parametrize(
    ("words", "ending"),
    [
        (["exit", "3"], 3),
        (["signal", "9"], -9),
        (["signal", "15"], -15),
        (["orphan", "3", "7"], 3),
        (["nonsense"], 125),
    ],
)
def test_it_ends_as_it_is_told(words: list[str], ending: int) -> None:
    assert ask(*words).returncode == ending


def test_write_tells_whether_a_file_can_be_written(tmp_path: Path) -> None:
    assert ask("write", str(tmp_path / "new")).returncode == 0
    assert (tmp_path / "new").exists()
    assert ask("write", str(tmp_path / "none" / "new")).returncode == 2  # ENOENT


def as_env(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["env", *words], executable=PROBE, capture_output=True, timeout=30, check=False)


def test_called_as_env_it_runs_a_program_with_exactly_the_given_environment() -> None:
    done = as_env("-i", "B=2", "A=x = y", "/usr/bin/env", "-0")
    assert done.stdout == b"B=2\0A=x = y\0"
    assert as_env("-i", "/usr/bin/env").stdout == b""
    assert as_env("-i", "A=1", "/not/there").returncode == 127
    assert as_env("-i", "A=1", "/etc/passwd").returncode == 126
    assert as_env("-u", "A").returncode == 125


def forward(*argv: str) -> dict[str, bool]:
    answer: dict[str, bool] = json.loads(ask("forward", "10000", "10000", *argv).stdout)
    return answer


def test_forward_tells_a_program_from_a_wrapper_that_passes_signals_on_or_does_not() -> None:
    direct = {"ready": True, "told": True, "traced": False, "same_process": True}
    assert forward(str(PROBE), "term") == direct
    # "$!" is set as soon as there is a child; a variable of its own the signal could come before.
    passes = "trap 'kill -TERM $!' TERM; \"$@\" & wait $!; wait $!"
    assert forward("/bin/sh", "-c", passes, "sh", str(PROBE), "term") == {**direct, "same_process": False}
    keeps = "trap '' TERM; exec setsid -w " + f"{PROBE} exit 0; "
    assert forward("/bin/sh", "-c", keeps)["ready"] is False


def test_ptrace_works_where_nothing_forbids_it() -> None:
    assert json.loads(ask("ptrace").stdout) == {"traceme": 0, "seize": 0}


def test_it_needs_no_interpreter_or_library() -> None:
    headers = subprocess.run(["readelf", "-lW", PROBE], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in headers
    assert "DYNAMIC" not in headers


@pytest.mark.parametrize("source", sorted((ROOT / "backends" / "probe").glob("*.[ch]")), ids=lambda path: path.name)
def test_each_source_states_its_rules_and_stays_small(source: Path) -> None:
    lines = source.read_text().splitlines()
    assert "SPDX-License-Identifier: GPL-3.0-or-later" in lines[0]
    assert len(lines) < 400
    assert source.suffix == ".h" or any("Rules of this file" in line for line in lines[:10])


def test_make_has_nothing_to_do_twice() -> None:
    done = subprocess.run(["make", "-C", ROOT, "-q", "all"], capture_output=True, check=False)
    assert done.returncode == 0


def test_a_machine_without_a_compiler_is_told_what_to_install(tmp_path: Path) -> None:
    """The build hook, run where `make` is not on PATH: one line that names the fix, no traceback of ours."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from hatch_build import NativeBuildHook\n"
        "from hatchling.bridge.app import Application\n"
        "NativeBuildHook(sys.argv[1], {}, None, None, sys.argv[2], 'wheel', Application())"
        ".initialize('editable', {'force_include': {}})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(ROOT), str(tmp_path)],
        env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode == 1
    assert "apt install gcc libc6-dev make" in done.stderr
    assert "Traceback" not in done.stderr


# Where man(1), bash, zsh and fish look below a prefix.
SHARED = (
    "man/man1/droiddeck-session.1", "man/man1/droiddeck-tracer.1", "bash-completion/completions/droiddeck-session",
    "zsh/site-functions/_droiddeck-session", "fish/vendor_completions.d/droiddeck-session.fish",
)  # fmt: skip


def test_a_wheel_carries_native_parts_man_pages_and_completions_under_a_platforms_tag(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=50,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    machine = os.uname().machine
    assert wheel.name.endswith(f"-py3-none-linux_{machine}.whl")
    listed = subprocess.run([sys.executable, "-m", "zipfile", "-l", wheel], capture_output=True, text=True, check=True)
    assert f"droiddeck_session/_native/{machine}/confinement-probe" in listed.stdout
    assert "droiddeck_proot/backend.py" in listed.stdout
    assert [path for path in SHARED if f".data/data/share/{path} " not in listed.stdout] == []
