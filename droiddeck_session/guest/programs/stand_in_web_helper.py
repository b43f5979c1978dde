#!/usr/bin/python3 -ISB
# SPDX-License-Identifier: GPL-3.0-or-later
"""web-helper: open stand-in for the client's browser processes: bursts of path calls, then nothing.

    web-helper --type=browser [--renderers=N] [--calls=N]
    web-helper --type=renderer [--calls=N]

Each writes one dot to stdout when its burst is done and idles until stdin ends, which is when the client is gone.
"""

from __future__ import annotations

import os
import signal
import sys

USAGE = 64  # EX_USAGE of sysexits.h
FOLDERS = ("/usr/lib", "/etc", "/usr/share")
PATHS = 256
REGULAR, LINK, TYPE = 0o100000, 0o120000, 0o170000  # S_IFMT of inode(7)


def say(text: str) -> None:
    """Write one line to stderr; bytes that are not UTF-8 survive."""
    os.write(2, os.fsencode(f"stand-in web-helper: {text}\n"))


def options(words: list[str]) -> tuple[str, int, int]:
    """Return the role, the number of renderers and the number of path calls."""
    values = {"--type": "browser", "--renderers": "3", "--calls": "2000"}
    for word in words:
        name, _, value = word.partition("=")
        if name not in values or (name == "--type" and value not in ("browser", "renderer")):
            say(f"unknown option: {word}")
            sys.exit(USAGE)
        values[name] = value
    if not values["--renderers"].isdecimal() or not values["--calls"].isdecimal():
        say("--renderers and --calls take a number")
        sys.exit(USAGE)
    return values["--type"], int(values["--renderers"]), int(values["--calls"])


def some_paths() -> list[str]:
    """Return paths that this guest really has, from the top down."""
    found: list[str] = []
    folders = list(FOLDERS)
    for folder in folders:  # grows on the way
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    found.append(entry.path)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue
        if len(found) >= PATHS:
            break
    return found[:PATHS] or ["/"]


def burst(calls: int) -> None:
    """Do at least that many path calls: stat each path, and open, read the link of, or ask for the cwd beside it."""
    paths = some_paths()
    done = 0
    while done < calls:
        for path in paths:
            try:
                kind = os.lstat(path).st_mode & TYPE
                if kind == LINK:
                    os.readlink(path)
                elif kind == REGULAR:
                    os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY))
                else:
                    os.getcwd()
            except OSError:
                pass  # unreadable for this user, or gone: the call was made all the same
            done += 2
            if done >= calls:
                return


def main() -> None:
    """Play the role of the command line."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    role, renderers, calls = options(sys.argv[1:])
    children = []
    if role == "browser":
        argv = [__file__, "--type=renderer", f"--calls={calls}"]
        children = [os.posix_spawn(__file__, argv, os.environ) for _ in range(renderers)]
    burst(calls)
    try:
        os.write(1, b".")
        while os.read(0, 4096):
            pass
    except OSError:
        pass  # the client went away in between
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
