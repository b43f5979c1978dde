# SPDX-License-Identifier: GPL-3.0-or-later
"""`guest shell` wraps: the shell or the program is the guest's, and so is the status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import CommandLine

pytestmark = pytest.mark.real


def test_without_a_program_it_is_the_guests_login_shell(cli: CommandLine) -> None:
    done = cli("guest", "shell", stdin=b"shopt -q login_shell && echo login shell; exit 5\n")
    assert (done.returncode, done.stdout) == (5, b"login shell\n"), done.stderr


def test_what_follows_the_dashes_is_a_program_and_no_guest(cli: CommandLine) -> None:
    done = cli("guest", "shell", "--", "sh", "-c", "cat /etc/debian_version; exit 3")
    assert (done.returncode, done.stdout[:3]) == (3, b"13."), done.stderr
    named = cli("guest", "shell", "demo", "--", "cat", "--version")
    assert named.returncode == 0
    assert named.stdout.startswith(b"cat (GNU coreutils)")


def test_root_is_root(cli: CommandLine) -> None:
    done = cli("guest", "shell", "--root", "--", "id", "-u")
    assert (done.returncode, done.stdout) == (0, b"0\n"), done.stderr


@pytest.mark.parametrize("arguments", [["nosuch"], ["nosuch", "--", "true"], ["--nosuch"], ["demo", "extra"]])
def test_our_own_failure_is_125(cli: CommandLine, arguments: list[str]) -> None:
    assert cli("guest", "shell", *arguments).returncode == 125
