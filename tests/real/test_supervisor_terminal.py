# SPDX-License-Identifier: GPL-3.0-or-later
"""Job control on a real pseudo-terminal: the program owns it, Ctrl-C and Ctrl-Z do what they do under a shell."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import termios
from typing import TYPE_CHECKING, Any

import pytest
from supervised import (
    BACKENDS,
    Supervised,
    environment,
    parent_of,
    state_of,
    status_beside_leftovers,
    until,
)
from terminals import TerminalProgram

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.real


SHELL = ["bash", "--norc", "--noprofile", "-i"]


def shell() -> TerminalProgram:
    """An interactive shell on a terminal of its own."""
    program = TerminalProgram(SHELL, {**environment(), "PS1": "READY> ", "TERM": "dumb"})
    program.expect("READY> ")
    return program


@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_an_interactive_shell_has_job_control(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any]
) -> None:
    script = shutil.which("script")
    assert script is not None, "script(1) is needed"
    session = Supervised(
        tmp_path / "state", ["bash", "--norc", "-i", "-c", "sleep 1 & jobs"], wrapper=wrapper, capabilities=capabilities
    )
    done = subprocess.run(
        [script, "-qec", shlex.join(session.argv), "/dev/null"],
        env=environment(), capture_output=True, stdin=subprocess.DEVNULL, timeout=40, check=False,
    )  # fmt: skip
    assert b"Running" in done.stdout
    assert b"cannot set terminal process group" not in done.stdout
    assert b"no job control" not in done.stdout
    assert done.returncode == status_beside_leftovers(0, wrapper)


@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_ctrl_c_reaches_the_program_once_and_its_answer_counts(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any]
) -> None:
    script = "trap 'echo GOT; sleep 0.3; exit 9' INT; echo UP; while :; do sleep 0.05; done"
    session = Supervised(tmp_path / "state", ["bash", "-c", script], wrapper=wrapper, capabilities=capabilities)
    with shell() as terminal:
        terminal.type(shlex.join(session.argv) + "; echo STATUS=$?\n")
        terminal.expect("\r\nUP\r\n")
        terminal.type("\x03")
        terminal.expect("GOT")
        between = terminal.expect("STATUS=9")
        assert "GOT" not in between
        terminal.expect("READY> ")
        assert terminal.foreground() == terminal.process.pid
    assert session.members() == []


@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_ctrl_z_stops_the_job_and_fg_continues_it(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any]
) -> None:
    script = f"echo $$ > {tmp_path}/pid; echo UP; read line; echo LINE=$line; exit 5"
    session = Supervised(tmp_path / "state", ["bash", "-c", script], wrapper=wrapper, capabilities=capabilities)
    with shell() as terminal:
        terminal.type(shlex.join(session.argv) + "; echo STATUS=$?\n")
        terminal.expect("\r\nUP\r\n")
        program = int((tmp_path / "pid").read_text())
        for _ in range(2):
            terminal.type("\x1a")
            terminal.expect("Stopped")
            terminal.expect("READY> ")
            until(lambda: state_of(program) in {"T", "t"}, "the program stopped")
            assert terminal.foreground() == terminal.process.pid
            terminal.type("fg\n")
            until(lambda: terminal.foreground() != terminal.process.pid, "the job has the terminal")
            until(lambda: state_of(program) in {"S", "R"}, "the program continued")
        terminal.type("hello\n")
        terminal.expect("LINE=hello")
        terminal.type("echo STATUS=$?\n")
        terminal.expect("STATUS=5")


@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
def test_in_a_pipeline_too_each_ctrl_z_stops_the_job_and_each_fg_continues_it(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any]
) -> None:
    # There Ctrl-Z goes to our own group, and we tell the program.
    script = f"echo $$ > {tmp_path}/pid; echo UP; while ! [ -e {tmp_path}/go ]; do sleep 0.05; done; echo END"
    session = Supervised(tmp_path / "state", ["bash", "-c", script], wrapper=wrapper, capabilities=capabilities)
    with shell() as terminal:
        terminal.type(f"{shlex.join(session.argv)} | cat; echo STATUS=${{PIPESTATUS[0]}}\n")
        terminal.expect("\r\nUP\r\n")
        program = int((tmp_path / "pid").read_text())
        for _ in range(3):
            terminal.type("\x1a")
            terminal.expect("Stopped")
            terminal.expect("READY> ")
            until(lambda: state_of(program) in {"T", "t"}, "the program stopped")
            terminal.type("fg\n")
            until(lambda: state_of(program) in {"S", "R"}, "the program continued")
            until(
                lambda: state_of(parent_of(session.event("guest.started")["pid"])) in {"S", "R"},
                "the supervisor runs on",
            )
        (tmp_path / "go").write_text("go")
        terminal.expect("END")
        terminal.expect("READY> ")


def test_a_job_in_the_background_stops_when_it_reads_and_goes_on_in_the_foreground(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", ["bash", "-c", "read line; echo LINE=$line"])
    with shell() as terminal:
        terminal.type(shlex.join(session.argv) + " &\n")
        program = session.event("guest.started")["pid"]
        until(lambda: state_of(program) == "T", "the program stopped by SIGTTIN")
        until(lambda: state_of(parent_of(program)) == "T", "the supervisor stopped with it")
        assert terminal.foreground() == terminal.process.pid
        terminal.type("fg\n")
        until(lambda: terminal.foreground() == program, "the program has the terminal")
        terminal.type("hello\n")
        terminal.expect("LINE=hello")
        terminal.expect("READY> ")


def test_a_pager_beside_us_in_a_pipeline_keeps_the_terminal(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", ["sh", "-c", "echo PAGE; sleep 0.2; exit 0"])
    pager = "bash -c 'cat; read answer < /dev/tty; echo ANSWER=$answer'"
    with shell() as terminal:
        terminal.type(f"{shlex.join(session.argv)} | {pager}\n")
        terminal.expect("\r\nPAGE\r\n")
        terminal.type("next\n")
        terminal.expect("ANSWER=next")
        terminal.expect("READY> ")


def test_a_program_in_a_pipeline_gets_the_terminal_when_it_reaches_for_it(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", ["bash", "-c", "cat; read answer < /dev/tty; echo ANSWER=$answer; exit 3"])
    with shell() as terminal:
        terminal.type(f"echo PIPED | {shlex.join(session.argv)}; echo STATUS=$?\n")
        terminal.expect("\r\nPIPED\r\n")
        terminal.type("mine\n")
        terminal.expect("ANSWER=mine")
        terminal.expect("STATUS=3")


@pytest.mark.parametrize(("wrapper", "capabilities"), BACKENDS)
@pytest.mark.parametrize("answer", ["", "trap '' HUP;"], ids=["obeys", "ignores-hup"])
def test_closing_the_terminal_ends_the_session(
    tmp_path: Path, wrapper: tuple[str, ...], capabilities: dict[str, Any], answer: str
) -> None:
    script = f"{answer} echo UP; sleep 600 & sleep 600; sleep 600"
    session = Supervised(
        tmp_path / "state", ["bash", "-c", script], wrapper=wrapper, capabilities=capabilities, grace=0.2
    )
    with shell() as terminal:
        terminal.type(shlex.join(session.argv) + "\n")
        terminal.expect("\r\nUP\r\n")
        terminal.hang_up()
        session.event("session.stopped")
    assert session.members() == []


def test_a_session_leader_without_a_shell_notices_that_its_terminal_is_gone(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", ["bash", "-c", "trap '' HUP; echo UP; sleep 600; sleep 600"], grace=0.2)
    with TerminalProgram(session.argv, environment()) as terminal:
        terminal.expect("UP")
        terminal.hang_up()
        terminal.process.wait(30)
    assert session.events()[-1]["event"] == "session.stopped"
    assert session.members() == []


def test_ctrl_z_is_nothing_where_no_shell_could_continue_us(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", ["bash", "-c", "echo UP; read line; echo LINE=$line; exit 5"])
    with TerminalProgram(session.argv, environment()) as terminal:
        terminal.expect("UP\r\n")
        terminal.type("\x1a")
        terminal.expect("^Z")
        terminal.type("hello\n")
        terminal.expect("LINE=hello")
        assert terminal.wait() == 5


def test_what_stty_sets_stays_and_what_a_killed_program_set_does_not(tmp_path: Path) -> None:
    def echoes(terminal: TerminalProgram) -> bool:
        return bool(termios.tcgetattr(terminal.master)[3] & termios.ECHO)

    for script, status, expected in (("stty -echo", 0, False), ("stty -echo; kill -9 $$", 137, True)):
        session = Supervised(tmp_path / f"state-{status}", ["sh", "-c", script])
        script_file = tmp_path / f"script-{status}"
        script_file.write_text(f"{shlex.join(session.argv)}\necho STATUS=$?\nread line\n")
        with TerminalProgram(["sh", str(script_file)], environment()) as terminal:
            terminal.expect(f"STATUS={status}")
            assert echoes(terminal) is expected
            terminal.type("\n")
            terminal.wait()


def test_the_window_size_changes_for_the_program(tmp_path: Path) -> None:
    script = "trap 'echo CHANGED; exit 7' WINCH; echo UP; while :; do sleep 0.05; done"
    session = Supervised(tmp_path / "state", ["bash", "-c", script])
    with TerminalProgram(session.argv, environment()) as terminal:
        terminal.expect("UP")
        termios.tcsetwinsize(terminal.master, (50, 132))
        terminal.expect("CHANGED")
        assert terminal.wait() == 7


def test_a_stop_of_a_program_without_a_terminal_does_not_stop_the_supervisor(tmp_path: Path) -> None:
    session = Supervised(tmp_path / "state", ["sleep", "600"]).start(start_new_session=True)
    program = session.event("guest.started")["pid"]
    subprocess.run(["kill", "-STOP", str(program)], check=True)
    until(lambda: state_of(program) == "T", "the program stopped")
    session.send(signal.SIGTERM)
    session.event("session.stopping")
    subprocess.run(["kill", "-CONT", str(program)], check=True)
    assert session.wait() == 143
