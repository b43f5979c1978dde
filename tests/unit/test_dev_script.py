# SPDX-License-Identifier: GPL-3.0-or-later
"""./dev on machines that lack something. Small scripts answer what it asks of Debian, so nothing is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

DEV = Path(__file__).parents[2] / "dev"
# Everything is there but two packages of lint's.
WITHOUT_TWO = """
for package; do
    case $package in
        --*|'${db'*) ;;
        shellcheck|groff-base) printf 'not-installed/%s ' "$package" ;;
        *) printf 'installed/%s ' "$package" ;;
    esac
done
exit 1
"""
WITH_ALL = WITHOUT_TWO.replace("shellcheck|groff-base", "nothing")
INSTALL = "apt-get install --yes --no-install-recommends shellcheck groff-base"


@dataclass
class Checkout:
    """A copy of ./dev in a folder with a space, and a PATH whose first folder tests fill."""

    folder: Path
    bin: Path

    def program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def dev(self, *arguments: str, root: bool = True) -> subprocess.CompletedProcess[str]:
        # In a user namespace without a mapping nobody is root, whoever runs the tests.
        unprivileged = [] if root else ["unshare", "--user"]
        as_root = ["unshare", "--user", "--map-root-user"] if root and os.geteuid() != 0 else []
        return subprocess.run(
            [*unprivileged, *as_root, "bash", self.folder / "dev", *arguments],
            cwd="/", env={"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.folder), "TMPDIR": str(self.folder)},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50, check=False,
        )  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(folder=tmp_path / "a check out", bin=tmp_path / "bin")
    made.folder.mkdir()
    made.bin.mkdir()
    shutil.copy(DEV, made.folder)
    # No .venv can be made here: what comes after Debian's packages is not these tests' matter, and needs a network.
    (made.folder / ".venv").write_text("a file")
    made.program("dpkg-query", WITHOUT_TWO)
    made.program("apt-get", f'echo "apt-get $*" >>{made.bin}/log')
    # What no test of this module may reach: the machine's own sudo.
    made.program("sudo", "exit 1")
    return made


def test_without_root_or_sudo_the_one_line_to_run_is_all_of_stdout(checkout: Checkout) -> None:
    done = checkout.dev("lint", root=False)
    assert (done.returncode, done.stdout) == (2, f"apt-get update && {INSTALL}\n")
    assert not (checkout.bin / "log").exists()


def test_with_sudo_that_needs_no_password_it_installs(checkout: Checkout) -> None:
    checkout.program("sudo", 'if [[ $1 == -n ]]; then exit 0; fi; exec "$@"')
    checkout.dev("lint", root=False)
    update, install = (checkout.bin / "log").read_text().splitlines()
    assert update == "apt-get update"
    assert install.startswith(f"{INSTALL} ")


def test_root_installs_only_what_is_missing(checkout: Checkout) -> None:
    checkout.dev("lint")
    assert f"{INSTALL} " in (checkout.bin / "log").read_text()


def test_nothing_is_installed_where_nothing_is_missing(checkout: Checkout) -> None:
    checkout.program("dpkg-query", WITH_ALL)
    checkout.dev("lint")
    assert not (checkout.bin / "log").exists()


def test_a_step_that_fails_shows_the_end_of_its_output_and_its_command(checkout: Checkout) -> None:
    checkout.program("apt-get", "seq 100; echo 'E: Unable to locate package' >&2; exit 100")
    done = checkout.dev("lint")
    assert done.returncode == 1
    assert "\n100\nE: Unable to locate package\n" in done.stderr
    assert "\n5\n" not in done.stderr
    assert INSTALL in done.stderr


def test_a_package_source_that_does_not_answer_stops_nothing(checkout: Checkout) -> None:
    checkout.program("apt-get", f'echo "apt-get $*" >>{checkout.bin}/log; [[ $1 != update ]]')
    done = checkout.dev("lint")
    assert INSTALL in (checkout.bin / "log").read_text()
    assert "failed: making .venv" in done.stderr


@pytest.mark.parametrize("arguments", [(), ("frobnicate",)])
def test_a_verb_that_is_not_known_is_refused_with_the_list(checkout: Checkout, arguments: tuple[str, ...]) -> None:
    done = checkout.dev(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "./dev VERB" in done.stderr


def test_help_is_an_answer(checkout: Checkout) -> None:
    done = checkout.dev("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "lint" in done.stdout


def test_two_at_once_take_turns(checkout: Checkout) -> None:
    checkout.program("apt-get", f"echo begin >>{checkout.bin}/log; sleep 0.2; echo end >>{checkout.bin}/log; exit 1")
    argv = ["bash", str(checkout.folder / "dev"), "lint"]
    if os.geteuid() != 0:
        argv = ["unshare", "--user", "--map-root-user", *argv]
    environ = {"PATH": f"{checkout.bin}:/usr/bin:/bin", "TMPDIR": str(checkout.folder)}
    both = [subprocess.Popen(argv, env=environ, stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(timeout=50) for process in both] == [1, 1]
    # update and install, twice: never one inside another
    assert (checkout.bin / "log").read_text().split() == ["begin", "end"] * 4
