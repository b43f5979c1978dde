# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs under the tracer and in the kernel's truth: the same small root, the same binds, two ways to get there.

The root borrows /usr from the host, so any program of the host's runs in it. The truth is a private mount namespace
with the same binds, and chroot; without root it is one in a user namespace.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).parent.parent
# DROIDDECK_TEST_BUILD=sanitized runs them with the build of `make sanitized`.
TRACER = ROOT / "build" / os.uname().machine / os.environ.get("DROIDDECK_TEST_BUILD", "") / "droiddeck-tracer"
PROGRAMS = ROOT / "backends" / "fastpath" / "tests"
TIME_LIMIT = 60
ENVIRON = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


@cache
def built(name: str, *flags: str) -> Path:
    """Compiles one of the test programs of backends/fastpath/tests, static, once a run."""
    folder = Path(mkdtemp(prefix="traced-"))
    folder.chmod(0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / name
    command: list[str | Path] = [
        "gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-O1", "-static",
        "-pthread", *flags,
        f"-I{PROGRAMS.parent}", "-o", target, PROGRAMS / f"{name}.c",
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=120)
    return target


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition, with a limit that only a hang reaches."""
    until = time.monotonic() + TIME_LIMIT
    while not condition():
        assert time.monotonic() < until, f"never: {what}"
        time.sleep(0.01)


@dataclass
class SmallGuest:
    """A root with /spot for the tests, programs of the host's, and binds; `top` holds it and what is bound."""

    top: Path
    binds: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root = self.top / "root"
        for folder in ("spot", "etc", "usr", "proc", "dev", "tmp", "programs"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            if Path("/", name).is_symlink():
                (self.root / name).symlink_to(f"usr/{name}")
        (self.root / "etc" / "hostname").write_text("guest\n")
        for device in ("null", "zero"):
            (self.root / "dev" / device).touch()
            self.binds.append((f"/dev/{device}", f"/dev/{device}"))
        self.binds += [("/usr", "/usr"), ("/proc", "/proc")]

    @property
    def work(self) -> Path:
        return self.root / "spot"

    def add(self, program: Path) -> str:
        """Put a program into the guest and return its guest path."""
        shutil.copy(program, self.root / "programs" / program.name)
        return f"/programs/{program.name}"

    def command(self, *argv: str, options: Sequence[str] = ()) -> list[str]:
        """Return the tracer's command line for a program in this guest."""
        binds = [word for host, guest in self.binds for word in ("-b", f"{host}:{guest}")]
        return [str(TRACER), "-r", str(self.root), *binds, *options, *argv]

    def traced(
        self, *argv: str, options: Sequence[str] = (), environ: dict[str, str] | None = None, stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program under the tracer to its end."""
        return subprocess.run(
            self.command(*argv, options=options),
            capture_output=True, input=stdin, timeout=TIME_LIMIT, env={**ENVIRON, **(environ or {})}, check=False,
        )  # fmt: skip

    def truth(self, *argv: str, cwd: str = "/") -> subprocess.CompletedProcess[bytes]:
        """Run the same in a mount namespace of its own and a chroot."""
        mounts = [("", str(self.root), str(self.root))]
        mounts += [("r", host, f"{self.root}{guest}") for host, guest in self.binds]
        lines = [shlex.join(["mount", f"--{kind}bind", host, guest]) for kind, host, guest in mounts]
        inner = shlex.join(["/bin/sh", "-c", 'cd "$0" && exec "$@"', cwd, *argv])
        lines.append(f"exec chroot {shlex.quote(str(self.root))} {inner}")
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        return subprocess.run(
            ["unshare", *user, "--mount", "--propagation", "private", "/bin/sh", "-ec", "\n".join(lines)],
            capture_output=True, timeout=TIME_LIMIT, env=ENVIRON, check=False,
        )  # fmt: skip


def answers(done: subprocess.CompletedProcess[bytes]) -> tuple[int, list[str], str]:
    """Return status, output and errors as a failing comparison shows them best."""
    return done.returncode, os.fsdecode(done.stdout).splitlines(), os.fsdecode(done.stderr)
