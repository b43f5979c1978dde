# SPDX-License-Identifier: GPL-3.0-or-later
"""`guest create` from outside: interrupted at chosen points, at the same time twice, on a full disk, and for real.

Where the point matters, a program takes mmdebstrap's place that goes as far as it is told and then waits; the
namespaces that it runs in, the locks and the signals are the real ones.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import cache_home
from guest_account import AccountCommandLine, account

from droiddeck_session.guest.removal import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import CommandLine

pytestmark = pytest.mark.real

# Its last argument but the mirror lines is the rootfs. `alive` is a fifo: open as long as any process of this is.
STAND_IN = """\
#!/bin/sh
for word; do case $word in */rootfs) root=$word;; esac; done
until_told() {
    [ "$STOP_AT" = "$1" ] || return 0
    exec 9>"$PLACE/alive"
    sleep 600 &
    echo "$1" >&9
    read -r _ <"$PLACE/go"
}
echo "I: running apt-get update..."
until_told begin
mkdir -p "$root/usr/bin" "$root/etc" "$root/var/lib/dpkg"
printf 'Package: dpkg\\nStatus: install ok installed\\nArchitecture: amd64\\nVersion: 1\\n' >"$root/var/lib/dpkg/status"
mkdir -m 0 "$root/closed"
chown 7:7 "$root/closed"
mount -t tmpfs tmpfs "$root/etc" || exit 9
echo mounted >"$root/etc/in-the-namespace"
echo "I: installing essential packages..."
until_told middle
umount "$root/etc"
printf '#!/bin/sh\\n' >"$root/usr/bin/env"
chmod 755 "$root/usr/bin/env"
[ -z "$FILL" ] || dd if=/dev/zero of="$root/large" bs=1M count=16 || exit 1
[ -z "$FAIL" ] || { echo "E: no such suite: nonesuch" >&2; exit 7; }
until_told end
echo "I: success in 1 seconds"
"""


class StandIn:
    """The program in mmdebstrap's place, and the command line that finds it."""

    def __init__(self, cli: CommandLine, place: Path) -> None:
        place.mkdir()
        (place / "mmdebstrap").write_text(STAND_IN)
        (place / "mmdebstrap").chmod(0o755)
        os.mkfifo(place / "alive")
        os.mkfifo(place / "go")
        self.place = place
        self.cli = cli
        cli.environ["PATH"] = f"{place}{os.pathsep}{cli.environ['PATH']}"
        cli.environ["PLACE"] = str(place)
        self.guests = cli.folders["data"] / "droiddeck-session" / "guests"

    def start(self, name: str, *, stop_at: str) -> tuple[subprocess.Popen[bytes], int]:
        """Start `guest create` and return when it has come to the point, with the reading end of `alive`."""
        process = subprocess.Popen(
            self.cli.argv("guest", "create", name),
            env={**self.cli.environ, "STOP_AT": stop_at},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        alive = os.open(self.place / "alive", os.O_RDONLY)
        assert os.read(alive, 100).decode() == f"{stop_at}\n"
        return process, alive

    def entries(self) -> list[str]:
        return sorted(entry.name for entry in self.guests.iterdir())

    def listed(self) -> list[str]:
        answer = json.loads(self.cli("guest", "list", "--json").stdout)
        return [guest["name"] for guest in answer["guests"]]


@pytest.fixture
def stand_in(bare_cli: CommandLine, tmp_path: Path) -> Iterator[StandIn]:
    found = StandIn(bare_cli, tmp_path / "a place")
    yield found
    # pytest cannot remove what belongs to other ids or may not be entered.
    remove_tree(os.fspath(bare_cli.folders["data"]))


def all_ended(alive: int) -> None:
    """Wait until no process holds the other end any more."""
    assert os.read(alive, 1) == b""
    os.close(alive)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("point", ["begin", "middle", "end"])
def test_an_interrupted_create_leaves_nothing(stand_in: StandIn, point: str, number: signal.Signals) -> None:
    process, alive = stand_in.start("demo", stop_at=point)
    process.send_signal(number)
    _, stderr = process.communicate()
    assert process.returncode == 128 + number
    assert b"Traceback" not in stderr
    all_ended(alive)
    assert stand_in.entries() == []


@pytest.mark.parametrize("point", ["begin", "middle", "end"])
def test_a_killed_create_takes_its_processes_along_and_the_next_one_clears_up(stand_in: StandIn, point: str) -> None:
    process, alive = stand_in.start("demo", stop_at=point)
    process.kill()
    process.communicate()
    all_ended(alive)
    assert stand_in.listed() == []
    assert [entry.startswith(".stage-demo-") for entry in stand_in.entries()] == [True]
    again = stand_in.cli("guest", "create", "demo")
    assert again.returncode == 0, again.stderr
    assert stand_in.entries() == ["demo"]


@pytest.mark.parametrize("tool", ["tar", "cp"])
def test_a_killed_import_takes_its_tool_along(stand_in: StandIn, tmp_path: Path, tool: str) -> None:
    program = stand_in.place / tool
    program.write_text('#!/bin/sh\nexec 9>"${0%/*}/alive"\necho up >&9\nexec sleep 600\n')
    program.chmod(0o755)
    source = tmp_path / "source"
    source.touch() if tool == "tar" else source.mkdir()
    argv = stand_in.cli.argv("guest", "import", str(source), "demo")
    with subprocess.Popen(argv, env=stand_in.cli.environ, stderr=subprocess.DEVNULL) as process:
        alive = os.open(stand_in.place / "alive", os.O_RDONLY)
        assert os.read(alive, 100) == b"up\n"
        process.kill()
    all_ended(alive)


def test_two_creates_of_one_name_do_not_meet(stand_in: StandIn) -> None:
    process, alive = stand_in.start("demo", stop_at="middle")
    second = stand_in.cli("guest", "create", "demo", "--json")
    assert second.returncode == 6
    assert json.loads(second.stdout)["error"]["code"] == "GUEST_BEING_MADE"
    other = stand_in.cli("guest", "create", "other")
    assert other.returncode == 0, other.stderr
    (stand_in.place / "go").write_text("\n")
    _, stderr = process.communicate()
    assert process.returncode == 0, stderr
    all_ended(alive)
    assert stand_in.entries() == ["demo", "other"]
    third = stand_in.cli("guest", "create", "demo", "--json")
    assert json.loads(third.stdout)["error"]["code"] == "GUEST_EXISTS"


def test_what_mmdebstrap_mounts_is_never_seen_outside(stand_in: StandIn) -> None:
    process, alive = stand_in.start("demo", stop_at="middle")
    (stage,) = stand_in.guests.iterdir()
    assert list((stage / "rootfs" / "etc").iterdir()) == []
    process.kill()
    process.communicate()
    all_ended(alive)


def test_a_create_that_fails_shows_the_last_lines_the_log_and_a_line_to_paste(stand_in: StandIn) -> None:
    done = stand_in.cli("guest", "create", "demo", env={"FAIL": "1", "SECRET": "swordfish"})
    stderr = done.stderr.decode()
    assert done.returncode == 6
    assert "E: no such suite: nonesuch" in stderr
    assert "[CREATE_FAILED]" in stderr
    log = stand_in.cli.folders["cache"] / "droiddeck-session" / "logs" / "create-demo.log"
    assert str(log) in stderr
    assert "E: no such suite: nonesuch" in log.read_text()
    assert "--variant=minbase" in stderr
    assert "swordfish" not in stderr + log.read_text()
    assert stand_in.entries() == []


def test_a_full_disk_is_one_clear_error_and_nothing_is_left(stand_in: StandIn) -> None:
    script = 'mkdir -p "$0" && mount -t tmpfs -o size=4m tmpfs "$0" && "$@"; echo "status $?"; ls -A "$0"/*/guests'
    namespaces = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--user", "--map-root-user"]
    done = subprocess.run(
        [*namespaces, "sh", "-c", script, stand_in.cli.folders["data"], *stand_in.cli.argv("guest", "create")],
        env={**stand_in.cli.environ, "FILL": "1"},
        capture_output=True, check=False, timeout=50,
    )  # fmt: skip
    assert b"[NO_SPACE]" in done.stderr, done.stderr
    assert done.stdout == b"status 6\n"


def test_one_line_per_step_without_a_terminal_and_the_answer_is_one_object(stand_in: StandIn) -> None:
    done = stand_in.cli("guest", "create", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["guest"]["name"] == "demo"
    assert [line.partition(": ")[2] for line in done.stderr.decode().splitlines()] == [
        "fetching the package lists",
        "setting up the essential packages",
    ]


def test_a_terminal_gets_a_bar_instead_of_lines(stand_in: StandIn) -> None:
    ours, theirs = pty.openpty()
    environ = {**stand_in.cli.environ, "TERM": "xterm"}
    process = subprocess.Popen(stand_in.cli.argv("guest", "create"), env=environ, stderr=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other side is closed
        while chunk := os.read(ours, 4096):
            shown += chunk
    os.close(ours)
    assert process.wait() == 0
    assert b"setting up the essential packages" in shown
    assert b"droiddeck-session: setting up" not in shown
    assert b"droiddeck-session: guest demo is ready" in shown


@pytest.mark.timeout(400)
def test_a_real_debian(bare_cli: CommandLine) -> None:
    bare_cli.environ["XDG_CACHE_HOME"] = str(cache_home())
    done = bare_cli("guest", "create", "--include", "netbase", time_limit=350)
    assert done.returncode == 0, done.stderr
    shown = json.loads(bare_cli("guest", "show", "--json").stdout)["guest"]
    root = Path(shown["root"])
    assert shown["usable"]
    assert {"apt", "dpkg", "python3", "netbase"} <= shown["packages"].keys()
    assert (root / "etc/ld.so.preload").read_bytes() == b""
    assert list((root / "var/cache/apt/archives").glob("*.deb")) == []
    assert (root / "usr/bin/python3").exists()
    # What it fetched is kept for the next, with its versions.
    kept = cache_home() / "droiddeck-session" / "apt" / f"trixie-{shown['arch']}"
    versions = json.loads((kept / "packages.json").read_text())["packages"]
    assert versions[f"dpkg:{shown['arch']}"] == shown["packages"]["dpkg"]
    assert sorted(root.parent.iterdir()) == [root.parent / "guest.json", root]
    gone = bare_cli("guest", "remove", "--yes", "demo", "--json")
    assert json.loads(gone.stdout)["removed"] == "demo"
    assert not root.parent.exists()


def test_what_a_killed_create_left_of_other_ids_is_cleared_without_root() -> None:
    with account() as cli:
        place = cli.folders["home"] / "place"
        stand_in = StandIn(cli, place)
        if isinstance(cli, AccountCommandLine):
            cli.hand_over()
        process, alive = stand_in.start("demo", stop_at="middle")
        (stage,) = stand_in.guests.iterdir()
        assert (stage / "rootfs" / "closed").lstat().st_uid not in {0, os.geteuid(), stage.lstat().st_uid}
        process.kill()
        process.communicate()
        all_ended(alive)
        again = cli("guest", "create", "demo")
        assert again.returncode == 0, again.stderr
        assert stand_in.entries() == ["demo"]


@pytest.mark.timeout(400)
def test_a_real_debian_without_root() -> None:
    with account() as cli:
        done = cli("guest", "create", time_limit=350)
        assert done.returncode == 0, done.stderr
        root = cli.folders["data"] / "droiddeck-session/guests/demo/rootfs"
        home = cli.folders["home"].stat()
        owners = {(path.lstat().st_uid, path.lstat().st_gid) for path in root.rglob("*")}
        assert owners == {(home.st_uid, home.st_gid)}
        assert json.loads(cli("guest", "show", "--json").stdout)["guest"]["usable"]
        gone = cli("guest", "remove", "--yes", "demo")
        assert gone.returncode == 0, gone.stderr
        assert not root.parent.exists()


def test_an_account_without_subordinate_ids_is_told_the_fix() -> None:
    with account() as cli:
        if not isinstance(cli, AccountCommandLine):
            return
        for table in ("subuid", "subgid"):
            (cli.base / "etc" / table).write_text("")
        done = cli("guest", "create")
        assert done.returncode == 7
        assert b"[NO_USER_NAMESPACE]" in done.stderr
        assert b"usermod --add-subuids" in done.stderr
        assert not (cli.folders["data"] / "droiddeck-session").exists()
