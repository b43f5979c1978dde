# SPDX-License-Identifier: GPL-3.0-or-later
"""The throw-away rootfs that probes run in, and what the confinement probe tells from inside it.

The probe's program lies at the same absolute path on the host and in the rootfs. So a backend that silently runs the
guest on the host's root (a shipped proot does) still runs a probe, and that one sees the host.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# What every process of a probe has in its environment, so that none is lost: the membership token (design 3.10).
MARKER: Final = "DROIDDECK_SESSION"
EVERYTHING: Final = "everything"
# File of the scratch folder that holds the marker's value.
TOKEN: Final = "token"  # noqa: S105 - the name of a file


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A laid-out scratch folder.

    Attributes:
        scratch: the folder, links resolved.
        program: the confinement probe, at the same path on the host and in the rootfs.
        token: content of the guest's own file, and value of `MARKER`.
    """

    scratch: str
    program: str
    token: str

    def host(self, name: str) -> str:
        """Return the host path of an entry of the scratch folder."""
        return f"{self.scratch}/{name}"

    @property
    def root(self) -> str:
        """The rootfs."""
        return self.host("root")

    @property
    def places(self) -> tuple[str, str, str]:
        """What the native probe's `look` judges: the guest's own file, a bound file, the host's own file."""
        return (
            _described(self.host("root/only-guest"), "/only-guest"),
            _described(self.host("bound/file"), "/bound/file"),
            self.host("only-host"),
        )


def _described(host_path: str, guest_path: str) -> str:
    """Return DEVICE:INODE:NAME: a guest path, and the identity that it must have."""
    found = Path(host_path).stat()
    return f"{found.st_dev}:{found.st_ino}:{guest_path}"


def lay_out(scratch: str, native_probe: str) -> Ground:
    """Make the throw-away rootfs and what is bound into it.

    Args:
        scratch: an empty folder.
        native_probe: the built confinement probe.

    Raises:
        OSError: the folder cannot be written.
    """
    scratch = os.path.realpath(scratch)
    ground = Ground(scratch=scratch, program=f"{scratch}/probe", token=secrets.token_hex(16))
    for folder in (
        "session/tracer", "bound", "read-only", "co:lon",
        "root/usr/bin", "root/bound", "root/read-only", "root/colon", f"root{scratch}",
    ):  # fmt: skip
        Path(ground.host(folder)).mkdir(mode=0o755, parents=True, exist_ok=True)
    shutil.copyfile(native_probe, ground.program)
    Path(ground.program).chmod(0o755)
    for twin in ("root/usr/bin/env", f"root{ground.program}"):
        Path(ground.host(twin)).hardlink_to(ground.program)
    # Before anything is started: with it, what a killed probe leaves is found.
    Path(ground.host(TOKEN)).write_text(ground.token, encoding="ascii")
    for name, content in (
        ("root/only-guest", ground.token), ("only-host", "host"), ("bound/file", "bound"), ("bound-file", "bound"),
        ("read-only/file", "read-only"), ("co:lon/file", "colon"), ("root/bound-file", ""),
    ):  # fmt: skip
        path = Path(ground.host(name))
        path.write_text(content, encoding="ascii")
        path.chmod(0o644)
        Path(f"{path}.link").symlink_to("target")
        Path(f"{path}.program").hardlink_to(ground.program)
    return ground


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the native probe's `look` saw; texts as the kernel had them."""

    calls: dict[str, str]
    content: str
    arguments: tuple[str, ...]
    environment: tuple[str, ...]
    cwd: str
    uname: tuple[str, ...]
    ids: tuple[int, ...]

    def leaks(self, token: str) -> tuple[str, ...]:
        """Return the calls that reached the host; `everything` where the guest's own file cannot be read."""
        if self.content != token:
            return (EVERYTHING,)
        leaking = (name.removeprefix("libc:") for name, verdict in self.calls.items() if verdict == "escape")
        return tuple(dict.fromkeys(leaking))


def read_answer(output: bytes) -> Answer | None:
    """Return the native probe's answer from what a backend printed, or None where there is none."""
    document = read_object(output)
    try:
        calls = document["calls"]
        (cwd,) = _texts(document["cwd"])
        return Answer(
            calls={str(name): str(verdict) for name, verdict in calls.items()},
            content=os.fsdecode(bytes.fromhex(document["content"])),
            arguments=_texts(document["arguments"]),
            environment=_texts(document["environment"]),
            cwd=cwd,
            uname=_texts(document["uname"]),
            ids=tuple(int(number) for number in document["ids"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def read_object(output: bytes) -> dict[str, Any]:
    """Return the last line of an output that is a JSON object; empty where there is none."""
    for line in reversed(output.splitlines()):
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            return document
    return {}


def _texts(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(os.fsdecode(bytes.fromhex(word)) for word in words)


def same_places(output: bytes, places: Sequence[str]) -> bool:
    """Tell whether the native probe's `seen` found exactly these host files, by device and inode."""
    wanted = [[0, found.st_dev, found.st_ino] for found in (Path(place).stat() for place in places)]
    return bool(read_object(output).get("seen") == wanted)
