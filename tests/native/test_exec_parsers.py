# SPDX-License-Identifier: GPL-3.0-or-later
"""The parsers behind execve: fuzzed, and a script's first line read as this machine's kernel reads it."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tracer_exec_files import SOURCES, build

if TYPE_CHECKING:
    from collections.abc import Iterator

SANITIZED: Final = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
PARSERS: Final = {"shebang": "shebang.c", "elf": "elf_image.c"}


def compiled(folder: Path, parser: str, *command: str) -> Path:
    program = folder / f"{command[0]}-{parser}"
    sources = [SOURCES.parent / "tracer" / PARSERS[parser], SOURCES / f"fuzz_{parser}.c"]
    subprocess.run([*command, "-o", program, *sources], check=True, timeout=120)
    return program


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each parser with gcc's sanitizers and a main of its own."""
    folder = tmp_path_factory.mktemp("parsers")
    return {parser: compiled(folder, parser, "gcc", *SANITIZED, "-DREPLAY") for parser in PARSERS}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files that the tracer's own execve is tried with."""
    folder = tmp_path_factory.mktemp("corpus")
    build(folder, str(folder))
    return sorted(path for path in folder.iterdir() if path.is_file() and path.stat().st_mode & 0o444)


@pytest.mark.parametrize("parser", PARSERS)
def test_the_laws_hold_for_random_inputs_and_for_all_files_of_the_table(
    programs: dict[str, Path], corpus: list[Path], parser: str
) -> None:
    for arguments in ([], corpus):
        run = subprocess.run([programs[parser], *arguments], capture_output=True, timeout=50, check=False)
        assert run.returncode == 0, run.stderr.decode(errors="replace")


@pytest.mark.long
@pytest.mark.parametrize("parser", PARSERS)
def test_a_minute_of_fuzzing_finds_nothing(corpus: list[Path], tmp_path: Path, parser: str) -> None:
    if not shutil.which("clang"):
        pytest.skip("clang is not installed")
    program = compiled(tmp_path, parser, "clang", "-g", "-O1", "-fsanitize=fuzzer,address,undefined")
    seeds = tmp_path / "seeds"
    seeds.mkdir()
    for path in corpus:
        (seeds / path.name).write_bytes(path.read_bytes()[:4096])
    run = subprocess.run(
        [program, "-max_total_time=40", seeds], cwd=tmp_path, capture_output=True, timeout=55, check=False
    )
    assert run.returncode == 0, run.stderr.decode(errors="replace")[-4000:]


# ---- the kernel as the judge -----------------------------------------------------------------------------------------

# Prints its arguments, each behind a letter that none of the tests' words has.
TELL: Final = r"""
#include <stdio.h>
int main(int argc, char **argv) {
    for (int n = 0; n < argc; n++)
        printf("%s\n", argv[n]);
    return 0;
}
"""


@pytest.fixture(scope="module")
def bench() -> Iterator[Path]:
    """A folder with a short name, for a program `t` that tells its arguments."""
    folder = Path("/tmp") / f"x{os.getpid()}"
    folder.mkdir()
    (folder / "tell.c").write_text(TELL)
    subprocess.run(["gcc", "-O1", "-static", "-o", folder / "t", folder / "tell.c"], check=True)
    yield folder
    shutil.rmtree(folder)


def kernels_answer(bench: Path, head: bytes) -> str:
    """What the kernel makes of a script: as the driver prints it, "-8" or the interpreter and its argument."""
    script = bench / "s"
    script.write_bytes(head)
    script.chmod(0o755)
    try:
        run = subprocess.run([script, "last"], capture_output=True, timeout=20, check=False, cwd=bench)
    except OSError as refusal:
        # A name that leads nowhere was read whole, or it would be ENOEXEC.
        return "-8" if refusal.errno == errno.ENOEXEC else errno.errorcode[refusal.errno or 0]
    *words, _, last = os.fsdecode(run.stdout).rstrip("\n").split("\n")
    assert last == "last"
    return " ".join(["1", *(f"[{word}]" for word in words)])


def our_answer(program: Path, bench: Path, head: bytes) -> str:
    (bench / "head").write_bytes(head)
    run = subprocess.run(
        [program, bench / "head"], capture_output=True, timeout=20, check=True, env={**os.environ, "FUZZ_PRINT": "1"}
    )
    return os.fsdecode(run.stdout).rstrip("\n")


def interpreter_of(answer: str) -> str:
    return answer.removeprefix("1 [").split("]")[0]


pieces = st.sampled_from([b" ", b"\t", b"\n", b"\0", b"a", b"-x", b"T", b"\r", b"#!", b"  ", b" " * 50, b"b" * 60])
lines = st.lists(pieces, max_size=14).map(b"".join)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.sampled_from([b"", b" ", b"\t", b" " * 200, b" " * 239]), after=lines, begins=st.booleans())
@example(before=b"", after=b" " + b"b" * 240, begins=True)
@example(before=b" " * 238, after=b"", begins=True)
@example(before=b" " * 239, after=b"", begins=True)
@example(before=b"", after=b" \0x\n", begins=True)
@example(before=b"\0", after=b"\n", begins=True)
def test_a_first_line_is_read_as_the_kernel_reads_it(
    programs: dict[str, Path], bench: Path, before: bytes, after: bytes, *, begins: bool
) -> None:
    head = (
        b"#!" + before + (os.fsencode(bench / "t") if begins else b"") + after.replace(b"T", os.fsencode(bench / "t"))
    )
    expected = kernels_answer(bench, head)
    given_answer = our_answer(programs["shebang"], bench, head)
    if expected in {"ENOENT", "EACCES", "ENOTDIR"}:
        # The kernel found an interpreter's name, and no such file.
        assert given_answer.startswith("1 [")
        name = interpreter_of(given_answer)
        assert not name or not os.access(bench / name, os.X_OK)
    else:
        assert given_answer == expected
