#!/usr/bin/python3 -ISB
# SPDX-License-Identifier: GPL-3.0-or-later
"""game: open stand-in for a game: looks through files like a loading screen, then ends as its script says.

$DROIDDECK_STAND_IN_GAME holds words, separated by spaces (`seconds=0.5` without):

    seconds=S stay             how long it looks through files; `stay`: until it is ended
    status=N signal=NAME       how it ends
    ignore=TERM,INT            signals that do nothing to it
    orphan=S holder=S          leave a process of an own session behind; a holder keeps stdout and stderr open
    flood=BYTES                write so much to stdout first
    show=names|arguments|cwd   write the environment's names, the arguments, or the cwd to stdout, NUL after each
"""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False  # the name that checkers know; importing typing for it would triple the start-up
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

USAGE = 64  # EX_USAGE of sysexits.h
SCRIPT, DEFAULT = "DROIDDECK_STAND_IN_GAME", "seconds=0.5"
PAUSE = 0.002


def signal_number(name: str) -> int:
    """Return a signal's number from `15`, `TERM` or `SIGTERM`."""
    return signal.Signals(int(name)) if name.isdecimal() else signal.Signals["SIG" + name.replace("SIG", "", 1)]


WORDS: dict[str, Callable[[str], Any]] = {
    "seconds": float,
    "stay": lambda _: float("inf"),
    "status": int,
    "signal": signal_number,
    "ignore": lambda value: [signal_number(name) for name in value.split(",")],
    "orphan": float,
    "holder": float,
    "flood": int,
    "show": ("names", "arguments", "cwd").index,
}


def say(text: str) -> None:
    """Write one line to stderr; bytes that are not UTF-8 survive."""
    os.write(2, os.fsencode(f"stand-in game: {text}\n"))


def script() -> dict[str, Any]:
    """Read the script; a word that means nothing ends the program, so that a test's slip is seen."""
    read: dict[str, Any] = {}
    for word in os.environ.get(SCRIPT, DEFAULT).split():
        name, _, value = word.partition("=")
        try:
            read[name] = WORDS[name](value)
        except (KeyError, ValueError):
            say(f"{SCRIPT}: cannot use {word}")
            sys.exit(USAGE)
    return read


def write_all(text: bytes) -> None:
    """Write everything to stdout."""
    while text:
        text = text[os.write(1, text) :]


def show(what: int) -> None:
    """Write what the tests ask for, NUL-terminated: any byte may be in it."""
    items = (list(os.environb), [os.fsencode(word) for word in sys.argv[1:]], [os.getcwdb()])[what]
    write_all(b"".join(item + b"\0" for item in items))


def flood(count: int) -> None:
    """Write numbered lines until there are so many bytes."""
    line = 0
    while count > 0:
        line += 1
        text = (b"%d of too many lines\n" % line)[:count]
        write_all(text)
        count -= len(text)


def leave_behind(seconds: float, *, holds_output: bool) -> None:
    """Double-fork a process that no parent waits for."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork() == 0:
        nothing = os.open("/dev/null", os.O_RDWR)
        for descriptor in (0,) if holds_output else (0, 1, 2):
            os.dup2(nothing, descriptor)
        time.sleep(seconds)
    os._exit(0)


def look_through_files(seconds: float) -> int:
    """Stat and open what is below /usr/share for some time; return the number of files seen."""
    end = time.monotonic() + seconds
    seen = 0
    while True:
        for folder, _, names in os.walk("/usr/share"):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    os.stat(path)
                    os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY))
                except OSError:
                    pass  # a dangling link, or unreadable for this user
                seen += 1
            if time.monotonic() >= end:
                return seen
            time.sleep(PAUSE)  # a game does not do only this
        time.sleep(PAUSE)


def main() -> None:
    """Do what the script says, in the order of its description."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    words = script()
    for number in words.get("ignore", ()):
        signal.signal(number, signal.SIG_IGN)
    say(f"this is an open stand-in; AppId {os.environ.get('SteamAppId', 'unknown')}")
    if "orphan" in words:
        leave_behind(words["orphan"], holds_output=False)
    if "holder" in words:
        leave_behind(words["holder"], holds_output=True)
    flood(words.get("flood", 0))
    if "show" in words:
        show(words["show"])
    seconds = words.get("stay", words.get("seconds", 0))
    if seconds:
        say(f"saw {look_through_files(seconds)} files")
    if "signal" in words:
        number = words["signal"]
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.exit(words.get("status", 0))


if __name__ == "__main__":
    main()
