# SPDX-License-Identifier: GPL-3.0-or-later
"""A request to end while a verb works: tidied up, told as 128+n, and never as something else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PRELUDE = """\
import os, signal, sys
from droiddeck_session.cli import main
from droiddeck_session.interruption import tidy_up_first
from droiddeck_session.errors import FilesError
def verb(*_, **__):
    {body}
main.droiddeck_session.main = verb
main.main([])
"""


def ended(*lines: str) -> tuple[int, str, str]:
    """Run a verb of these lines; return status, stdout and stderr."""
    code = PRELUDE.format(body="\n    ".join(lines))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_request_ends_the_command_and_no_other_cuts_its_tidying_short(signum: signal.Signals) -> None:
    others = (f"    signal.raise_signal({int(other)})" for other in (signum, signal.SIGTERM, signal.SIGINT))
    found = ended(
        "tidy_up_first()",
        f"try: signal.raise_signal({int(signum)})",
        "finally:", *others,
        "    print('tidied')",
    )  # fmt: skip
    assert found == (128 + signum, "tidied\n", "")


@pytest.mark.parametrize(
    "error", ["ValueError('as pydantic does')", "FilesError(code='X', message='the child failed')", "KeyboardInterrupt"]
)
def test_an_exception_that_somebody_makes_of_the_request_does_not_hide_it(error: str) -> None:
    found = ended(
        "tidy_up_first()",
        "try: signal.raise_signal(signal.SIGTERM)",
        f"except SystemExit: raise {error}",
    )  # fmt: skip
    assert found == (143, "", "")


def test_a_request_that_somebody_swallows_counts_at_the_end() -> None:
    found = ended(
        "tidy_up_first()",
        "try: signal.raise_signal(signal.SIGHUP)",
        "except SystemExit: pass",
    )  # fmt: skip
    assert found == (129, "", "")


def test_what_is_said_of_a_request_goes_through_while_something_else_is_being_said() -> None:
    # As when it comes in the middle of a write to stderr: a stream refuses to be entered again.
    found = ended(
        "import io",
        "class Interrupting(io.RawIOBase):",
        "    def writable(self): return True",
        "    def write(self, text):",
        "        signal.raise_signal(signal.SIGHUP)",
        "        return len(text)",
        "tidy_up_first(say_so=True)",
        "sys.stderr = io.TextIOWrapper(io.BufferedWriter(Interrupting()))",
        "print('a step', file=sys.stderr, flush=True)",
    )
    assert found == (129, "", "droiddeck-session: SIGHUP: cleaning up\n")


def test_what_the_caller_ignores_stays_ignored() -> None:
    found = ended(
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)",
        "tidy_up_first()",
        "signal.raise_signal(signal.SIGHUP)",
        "print('goes on')",
    )
    assert found == (0, "goes on\n", "")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_request_while_modules_are_imported_ends_the_program_at_once_without_a_word(
    tmp_path: Path, signum: signal.Signals
) -> None:
    # click is imported first of all; this one never ends.
    (tmp_path / "click.py").write_text("import os, time\nos.write(1, b'importing')\ntime.sleep(600)\n")
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"}
    with subprocess.Popen(
        [sys.executable, "-m", "droiddeck_session", "run", "--", "true"],
        env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.read(9) == b"importing"
        process.send_signal(signum)
        _, told = process.communicate(timeout=30)
    assert (process.returncode, told) == (-signum, b"")
