# SPDX-License-Identifier: GPL-3.0-or-later
"""The paths that `verify` asks about, by class, and the places that it asks from.

The tree is the one that the host prepares (diagnostics/verify/tree.py). A path that no terminal shows has a label.
"""

from __future__ import annotations

import os

# Where a relative path starts: a working directory. `gone` was removed after it was entered.
FOLDERS = {
    "ordinary": b"/ordinary",
    "bound": b"/bound/sub",
    "nested": b"/bound/nested",
    "deep": b"/deep/a/b/c/d/e/f/g/h",
}
GONE = "gone"
# Descriptors that are held open at fixed numbers: number, path, flags. A path may be asked for through each.
HELD = {
    "fd-ordinary": (101, b"/ordinary", os.O_RDONLY | os.O_DIRECTORY),
    "fd-bound": (102, b"/bound/sub", os.O_RDONLY | os.O_DIRECTORY),
    "fd-nested": (103, b"/bound/nested", os.O_PATH | os.O_DIRECTORY),
    "fd-file": (104, b"/ordinary/file", os.O_RDONLY),
    "fd-bound-file": (105, b"/bound-file", os.O_RDONLY),
    "fd-link": (106, b"/links/relative", os.O_PATH | os.O_NOFOLLOW),
}
NOT_OPEN = ("fd-not-open", 99)
REMOVED, REMOVED_FOLDER, PIPE = 107, 108, 109

_LONGEST_NAME, _LONGEST_PATH = 255, 4095


def _padded(length: int) -> bytes:
    """Return a path to a file that is there, of just so many bytes."""
    head, tail = b"/ordinary/", b"file"
    room = length - len(head) - len(tail)
    return head + b"./" * (room // 2) + b"/" * (room % 2) + tail


# Absolute paths; asked about from one place. None leads to what is not of the tree: all calls are tried on them.
ABSOLUTE: dict[str, tuple[str, ...]] = {
    "plain": (
        "/ordinary", "/ordinary/file", "/ordinary/empty", "/ordinary/folder", "/ordinary/folder/inner/leaf",
        "/ordinary/empty-folder", "/ordinary/hard-1", "/ordinary/fifo", "//ordinary///file", "/./ordinary/./file",
    ),
    "rights": ("/ordinary/closed", "/ordinary/closed-folder", "/ordinary/closed-folder/inside", "/ordinary/read-only"),
    "missing": (
        "/absent", "/ordinary/absent", "/ordinary/absent/", "/ordinary/absent/.", "/ordinary/absent/..",
        "/ordinary/absent/x", "/ordinary/absent/../file", "/bound/absent", "/deep/mount/point/absent",
    ),
    "slash": (
        "/ordinary/file/", "/ordinary/file/.", "/ordinary/file/..", "/ordinary/file/x", "/ordinary/folder/",
        "/ordinary/folder//", "/ordinary/fifo/", "/bound-file/", "/bound/", "/links/folder/", "/links/relative/",
        "/links/dangling/", "/links/loop/", "/links/into-bound-folder/",
    ),
    "dots": (
        "/ordinary/.", "/ordinary/folder/.", "/ordinary/folder/..", "/ordinary/folder/../file", "/ordinary/../ordinary",
        "/bound/..", "/bound/../ordinary/file", "/bound/.", "/bound/sub/..", "/bound/nested/..",
        "/bound/nested/../file",
        "/deep/mount/point/..", "/deep/mount/point/../..", "/../../ordinary/file", "/ordinary/./folder/./inner/../leaf",
        "/bound-file/..", "/links/folder/..", "/links/folder/../file", "/links/into-nested/../file",
    ),
    "link": (
        "/links/relative", "/links/absolute", "/links/folder", "/links/folder-absolute", "/links/folder-slash",
        "/links/folder/inner/leaf", "/links/folder-absolute/inner/leaf", "/links/two", "/links/beyond",
        "/links/beyond/ordinary/file", "/links/file-slash", "/links/dots", "/ordinary/up/ordinary/file",
        "/links/slashes", "/links/self/relative", "/links/fifo", "/links/closed",
    ),
    "dangling": (
        "/links/dangling", "/links/dangling-absolute", "/links/dangling-folder", "/links/dangling/x",
        "/links/dangling-slash", "/links/dangling-bound", "/links/to-dangling",
    ),
    "loop": ("/links/loop", "/links/ping", "/links/loop/x", "/links/loop-through-bound"),
    "bind": (
        "/bound/file", "/bound/sub/leaf", "/bound/hidden", "/bound-file", "/bound/sub/bound-file", "/bound/nested/file",
        "/bound/nested/sub/leaf", "/deep/mount/point/file", "/deep/mount/beside", "/bound/sub",
    ),
    "mount": ("/bound", "/bound/nested", "/deep/mount/point", "/deep/mount", "/deep"),
    "bind-link": (
        "/links/into-bound", "/links/into-bound-folder", "/links/into-bound-folder/leaf", "/links/into-nested/file",
        "/links/into-file", "/bound/out", "/bound/out-absolute", "/bound/out-folder/inner/leaf", "/bound/out-dangling",
        "/bound/nested/above", "/bound/nested/absolute", "/bound/to-mount", "/bound/up/ordinary/file",
        "/bound/nested/up/file", "/links/to-mount-point",
    ),
    "odd": (
        "/names/a b", "/names/co:lon", "/names/...", "/names/..x", "/names/-", "/names/.hidden", "/names/*", "/names/~",
        "/names/link with space",
    ),
}  # fmt: skip
# Folders that hold a mount point and are none themselves.
ABOVE_MOUNT_POINTS = (b"/deep/mount", b"/deep")
# The same, with bytes that a terminal or an id cannot hold.
LABELLED: dict[str, dict[str, bytes]] = {
    "odd": {
        "new-line": b"/names/new\nline",
        "not-utf-8": b"/names/\xff\xfe",
        "back-slash": b"/names/back\\slash",
        "link-not-utf-8": b"/names/link-\xe9",
        "empty": b"",
    },
    # The kernel follows 40 links in one path (linux/namei.h, MAXSYMLINKS).
    "chain": {
        **{f"{count} links": b"/links/" + b"self/" * (count - 1) + b"relative" for count in (39, 40, 41)},
        **{f"{count} links to a folder": b"/links/" + b"self/" * (count - 1) + b"folder/leaf" for count in (40, 41)},
        **{f"{count} links in links": b"/links/" + b"self/" * (count - 32) + b"thirty-two" for count in (40, 41)},
        "40 links and a slash": b"/links/" + b"self/" * 39 + b"folder/",
    },
    "length": {
        "254-bytes": b"/names/" + b"m" * (_LONGEST_NAME - 1),
        "255-bytes": b"/names/" + b"n" * _LONGEST_NAME,
        "255-bytes-absent": b"/names/" + b"o" * _LONGEST_NAME,
        "256-bytes": b"/names/" + b"n" * (_LONGEST_NAME + 1),
        "256-bytes-below": b"/names/" + b"n" * (_LONGEST_NAME + 1) + b"/x",
        "255-bytes-link": b"/names/" + b"l" * _LONGEST_NAME,
        "long-target": b"/links/long-target",
        "path-4094": _padded(_LONGEST_PATH - 1),
        "path-4095": _padded(_LONGEST_PATH),
        "path-4096": _padded(_LONGEST_PATH + 1),
    },
}
# From each folder; all of them have the same names in them.
RELATIVE = (
    "file", "./file", "file/", "file/x", "sub", "sub/", "sub/.", "sub/..", "sub/../file", "sub/leaf", "link",
    "link/", "up",
    "up/", "absent", "absent/", "absent/x", ".", "..", "../", "../..",
)  # fmt: skip
# Relative ones that reach farther, and may reach the rootfs's own folder: nothing is changed through them.
FAR = (
    "../../../../../../../..", "../../../../../../../../ordinary/file", "../ordinary/file", "../../ordinary/file",
    "../bound/file", "up/up/up/up", "../nested/file", "sub/../../file", "up/file", "./../sub/leaf",
)  # fmt: skip
FROM_GONE = (".", "..", "file", "./file", "../ordinary/file", "../", "./", "")
THROUGH_DESCRIPTOR = (
    "file",
    "sub/leaf",
    "sub/../file",
    "link",
    "up",
    "absent/x",
    ".",
    "..",
    "../file",
    "",
    "/ordinary/file",
)
# What a descriptor of something else than a folder can be asked.
THROUGH_FILE = ("file", ".", "", "/ordinary/file")
# Only looked at: the rootfs's own folder, the guest's files, procfs and devices.
READ_ONLY: dict[str, tuple[str, ...]] = {
    "root": ("/", "//", "/.", "/..", "/../..", "/links/root", "/links/root/ordinary/file", "/links/..", "/bound/up"),
    "guest": ("/usr", "/usr/bin/env", "/lib", "/lib/os-release", "/bin/sh", "/usr/lib/os-release", "/opt/droiddeck"),
    "device": ("/dev", "/dev/null", "/dev/fd", "/dev/fd/104", "/dev/stdin", "/dev/null/x", "/dev/..", "/dev/null/"),
    "proc": (
        "/proc", "/proc/self", "/proc/self/", "/proc/self/exe", "/proc/self/exe/", "/proc/self/cwd", "/proc/self/cwd/",
        "/proc/self/cwd/file", "/proc/self/cwd/..", "/proc/self/root", "/proc/self/root/", "/proc/self/root/ordinary",
        "/proc/self/root/bound/file", "/proc/self/root/..", "/proc/self/fd/104", "/proc/self/fd/104/",
        "/proc/self/fd/101", "/proc/self/fd/101/file", "/proc/self/fd/101/../bound/file", "/proc/self/fd/102/leaf",
        "/proc/self/fd/103/file", "/proc/self/fd/103/..", "/proc/self/fd/105", "/proc/self/fd/106",
        "/proc/self/fd/107", "/proc/self/fd/108", "/proc/self/fd/108/x", "/proc/self/fd/108/..", "/proc/self/fd/109",
        "/proc/self/fd/99", "/proc/self/fd", "/proc/self/fdinfo/104", "/proc/thread-self", "/proc/thread-self/fd/104",
        "/proc/thread-self/cwd/file", "/proc/thread-self/root/ordinary/file", "/proc/thread-self/exe",
        "/proc/self/task/../fd/104", "/proc/mounts", "/proc/absent", "/proc/self/absent", "/proc/self/root/absent",
        "/proc/../ordinary/file", "/links/proc-self", "/links/proc-cwd", "/links/proc-cwd/file", "/links/proc-exe",
        "/links/proc-root", "/links/proc-root/ordinary/file", "/links/proc-fd", "/links/proc-fd/104",
        "/links/proc-file",
        "/bound/proc-cwd/file",
    ),
}  # fmt: skip
# Folders whose relative paths are asked about, and changed.
READ_PLACES, WRITE_PLACES = ("bound", "nested", "deep"), ("nested", "deep")
# Through procfs to files of the tree: all calls are tried.
PROC_TO_TREE = (
    "/proc/self/cwd/file", "/proc/self/fd/101/file", "/proc/self/fd/102/leaf", "/proc/self/fd/103/file",
    "/proc/self/root/ordinary/file", "/proc/self/fd/104", "/proc/self/fd/106", "/proc/self/cwd/absent",
)  # fmt: skip
