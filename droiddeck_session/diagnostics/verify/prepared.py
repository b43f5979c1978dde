# SPDX-License-Identifier: GPL-3.0-or-later
"""The tree that `verify` asks about, as a table: what lies in the rootfs and in each folder that is bound into it.

Paths are below the folder of one run: `root/` is the rootfs, `host/` holds what is bound. The guest's side of the same
is guest/programs/verify_paths.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = "root"
# What a program that was started says of itself; scripts and the words of programs (verify_exec.py) read it.
REPORT: Final = """\
read -r comm </proc/$$/comm
echo "$0 | $* | $comm"
/usr/bin/readlink /proc/$$/exe
/usr/bin/tr '\\0' '|' </proc/$$/cmdline
/usr/bin/pwd
"""
# Nothing in it is compared: cases work there and leave it empty.
SCRATCH: Final = "root/scratch"
ATTRIBUTE: Final = "user.droiddeck"

Kind = Literal["folder", "file", "link", "fifo"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of the prepared tree.

    Attributes:
        content: a file's bytes, or where a link leads.
        attribute: value of the one extended attribute; empty for none.
        hard: path of an earlier entry that this is another name of.
    """

    kind: Kind
    content: bytes = b""
    mode: int = 0o644
    attribute: bytes = b""
    hard: str = ""


# Mount points in the rootfs (or in what is bound there already) and what is bound at them.
BINDS: Final = {
    "/bound": "host/bound",
    "/bound/nested": "host/nested",
    "/bound/sub/bound-file": "host/inner-file",
    "/bound/sub/bound-sh": "host/inner-sh",
    "/bound-file": "host/a file of the host",
    "/deep/mount/point": "host/deep/er/point",
}
# What is a mount point, is mounted or holds one, parents first.
HELD: Final = (
    "root/bound", "root/bound-file", "root/deep", "root/deep/mount", "root/deep/mount/point", "host", "host/bound",
    "host/bound/sub", "host/bound/nested", "host/nested", "host/deep", "host/deep/er", "host/deep/er/point",
    "host/a file of the host", "host/inner-file", "host/inner-sh", "host/bound/sub/bound-file",
    "host/bound/sub/bound-sh",
)  # fmt: skip
# Where relative paths start from; each has in it file, sub/leaf, link and up.
_PLACES: Final = (
    "root/ordinary", "host/bound", "host/bound/sub", "host/nested", "root/deep/a/b/c/d/e/f/g/h", "host/deep/er/point",
)  # fmt: skip

_FOLDERS: Final = (
    "root", "root/ordinary/folder", "root/ordinary/folder/inner", "root/ordinary/empty-folder", "root/links",
    "root/bound", "root/deep", "root/deep/mount", "root/deep/mount/point", "root/names",
    "root/programs", "root/scratch", "root/opt", "root/opt/droiddeck", "root/usr", "root/proc", "root/dev", "host",
    "host/bound/nested",
)  # fmt: skip

_LINKS: Final = {
    "relative": "../ordinary/file", "absolute": "/ordinary/file", "folder": "../ordinary/folder",
    "folder-absolute": "/ordinary/folder", "folder-slash": "/ordinary/folder/", "two": "relative",
    "beyond": "../../../../..", "root": "/", "file-slash": "../ordinary/file/",
    "dots": "./.././links/../ordinary/./file",
    "slashes": "..//ordinary///file", "self": ".", "fifo": "../ordinary/fifo", "closed": "/ordinary/closed",
    "dangling": "../ordinary/new-by-link", "dangling-absolute": "/ordinary/new-by-link",
    "dangling-folder": "/nowhere/x",
    "dangling-slash": "../ordinary/new-by-link/", "dangling-bound": "/bound/new-by-link", "to-dangling": "dangling",
    "loop": "loop", "ping": "pong", "pong": "ping", "loop-through-bound": "/bound/loop-back",
    "into-bound": "/bound/file", "into-bound-folder": "../bound/sub", "into-nested": "/bound/nested",
    "into-file": "../bound-file", "into-bound-sh": "/bound/sh", "to-mount-point": "/deep/mount/point",
    "program": "../programs/sh", "program-absolute": "/programs/sh", "script": "../programs/script",
    "proc-self": "/proc/self", "proc-cwd": "/proc/self/cwd", "proc-exe": "/proc/self/exe",
    "proc-root": "/proc/self/root",
    "proc-fd": "/proc/self/fd", "proc-file": "/proc/self/fd/104", "scratch": "/scratch",
    "receiver": "/scratch/receiver",
    "thirty-two": "./" + "self/" * 30 + "relative",
    "long-target": "./" * 2000 + "../ordinary/file",
}  # fmt: skip
# Below host/bound, but for the last ones.
_LINKS_OF_BOUND: Final = {
    "out": "../ordinary/file", "out-absolute": "/ordinary/file", "out-folder": "/ordinary/folder",
    "out-dangling": "/ordinary/new-by-link", "to-mount": "nested", "loop-back": "../links/loop-through-bound",
    "proc-cwd": "/proc/self/cwd", "script": "../programs/script", "../nested/above": "../file",
    "../nested/absolute": "/bound/nested/file",
}  # fmt: skip

_SCRIPTS: Final = {
    "script": "#!/programs/sh", "script-with-word": "#!/programs/sh -e", "script-by-link": "#!/links/program",
    "script-of-bound": "#!/bound/sh", "script-of-script": "#!/programs/script -x",
    "script-4": "#!/programs/script-of-script",
    "script-5": "#!/programs/script-4", "script-6": "#!/programs/script-5", "script-absent": "#!/programs/absent",
    "script-of-folder": "#!/programs", "script-of-itself": "#!/programs/script-of-itself", "script-empty": "#!",
    "script-spaces": "#! \t /programs/sh  -e  \t", "script-line-feed": "#!/programs/sh\r",
    "script-relative": "#!programs/sh",
    "script-no-newline": "#!/programs/sh -c :", "script-long": "#!/programs/" + "./" * 116 + "sh",
    "script-too-long": "#!/programs/" + "./" * 140 + "sh", "script-not-executable": "#!/programs/sh",
    "script-of-text": "#!/programs/text", "script-count": "#!/programs/sh",
}  # fmt: skip
_NAMES: Final = (
    b"a b",
    b"co:lon",
    b"...",
    b"..x",
    b"-",
    b".hidden",
    b"*",
    b"~",
    b"new\nline",
    b"\xff\xfe",
    b"back\\slash",
)


def entries(shell: bytes) -> dict[str, Entry]:
    """Return all entries, parents first.

    Args:
        shell: the program that stands for all programs: the guest's sh.
    """
    return dict(_entries(shell))


def _entries(shell: bytes) -> Iterator[tuple[str, Entry]]:
    folder = Entry(kind="folder", mode=0o755)
    for path in (*_FOLDERS, *_PLACES, *(f"{place}/sub" for place in _PLACES)):
        for parent in _with_parents(path):
            yield parent, folder
    for place in _PLACES:
        yield f"{place}/file", Entry(kind="file", content=f"{place}/file\n".encode(), attribute=b"of a file")
        yield f"{place}/sub/leaf", Entry(kind="file", content=f"{place}/sub/leaf\n".encode())
        yield f"{place}/link", Entry(kind="link", content=b"file")
        yield f"{place}/up", Entry(kind="link", content=b"..")
    yield from _ordinary()
    for name, target in _LINKS.items():
        yield f"root/links/{name}", Entry(kind="link", content=target.encode())
    for name, target in _LINKS_OF_BOUND.items():
        yield f"host/bound/{name}".replace("bound/../", ""), Entry(kind="link", content=target.encode())
    yield from _names()
    yield from _bound(shell)
    yield from _programs(shell)


def _with_parents(path: str) -> Iterator[str]:
    parts = path.split("/")
    yield from ("/".join(parts[:end]) for end in range(1, len(parts) + 1))


def _ordinary() -> Iterator[tuple[str, Entry]]:
    below = "root/ordinary/"
    yield below + "empty", Entry(kind="file")
    yield below + "folder/inner/leaf", Entry(kind="file", content=b"leaf\n")
    yield below + "folder/leaf", Entry(kind="file", content=b"upper leaf\n")
    yield below + "folder/file", Entry(kind="file", content=b"file in folder\n")
    yield below + "hard-1", Entry(kind="file", content=b"two names\n")
    yield below + "hard-2", Entry(kind="file", hard=below + "hard-1")
    yield below + "fifo", Entry(kind="fifo")
    yield below + "closed", Entry(kind="file", content=b"closed\n", mode=0o000)
    yield below + "read-only", Entry(kind="file", content=b"read-only\n", mode=0o444, attribute=b"kept")
    yield below + "closed-folder", Entry(kind="folder", mode=0o000)


def _names() -> Iterator[tuple[str, Entry]]:
    for name in (*_NAMES, b"m" * 254, b"n" * 255):
        path = "root/names/" + name.decode(errors="surrogateescape")
        yield path, Entry(kind="file", content=name[:20], attribute=b"odd")
    yield "root/names/link with space", Entry(kind="link", content=b"a b")
    yield "root/names/link-\udce9", Entry(kind="link", content=b"\xff\xfe")
    yield "root/names/" + "l" * 255, Entry(kind="link", content=b"n" * 255)


def _bound(shell: bytes) -> Iterator[tuple[str, Entry]]:
    program = Entry(kind="file", content=shell, mode=0o755)
    yield "root/bound/hidden", Entry(kind="file", content=b"under the mount\n")
    yield "root/bound-file", Entry(kind="file", content=b"under the mount\n")
    yield BINDS["/bound-file"], Entry(kind="file", content=b"a bound file\n", attribute=b"bound")
    yield "host/inner-file", Entry(kind="file", content=b"an inner bound file\n")
    yield "host/inner-sh", program
    yield "host/bound/sh", program
    for name in ("bound-file", "bound-sh"):
        yield f"host/bound/sub/{name}", Entry(kind="file", content=b"under the mount\n")
    yield "root/deep/mount/beside", Entry(kind="file", content=b"beside\n")


def _programs(shell: bytes) -> Iterator[tuple[str, Entry]]:
    below = "root/programs/"
    program = Entry(kind="file", content=shell, mode=0o755)
    for name in ("sh", "\u00e9 sh"):
        yield below + name, program
    for name, line in _SCRIPTS.items():
        body = "echo $#" if name == "script-count" else ". /programs/report"
        text = f"{line}\n{body}\n" if name != "script-no-newline" else line
        mode = 0o644 if name == "script-not-executable" else 0o755
        yield below + name, Entry(kind="file", content=text.encode(), mode=mode)
    for name, content, mode in (
        ("text", b"echo text\n", 0o755), ("report", REPORT.encode(), 0o644), ("empty", b"", 0o755),
        ("garbage", bytes(range(256)), 0o755),
        ("elf-cut", shell[:40], 0o755), ("elf-header", shell[:64], 0o755),
        ("elf-other-machine", shell[:18] + b"\xfe\xfe" + shell[20:], 0o755), ("write-only", shell, 0o200),
    ):  # fmt: skip
        yield below + name, Entry(kind="file", content=content, mode=mode)
