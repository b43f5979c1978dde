#!/usr/bin/python3 -ISB
# SPDX-License-Identifier: GPL-3.0-or-later
"""desktop: open stand-in for a desktop session: a panel beside it, and an end as its script says.

$DROIDDECK_STAND_IN_DESKTOP holds words, separated by spaces (`seconds=1` without):

    seconds=S stay         how long it runs; `stay`: until it is ended
    status=N signal=NAME   how it ends
    ignore=TERM,INT        signals that do nothing to it
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
SCRIPT, DEFAULT = "DROIDDECK_STAND_IN_DESKTOP", "seconds=1"
LONG = 3600.0


def signal_number(name: str) -> int:
    """Return a signal's number from `15`, `TERM` or `SIGTERM`."""
    return signal.Signals(int(name)) if name.isdecimal() else signal.Signals["SIG" + name.replace("SIG", "", 1)]


WORDS: dict[str, Callable[[str], Any]] = {
    "seconds": float,
    "stay": lambda _: float("inf"),
    "status": int,
    "signal": signal_number,
    "ignore": lambda value: [signal_number(name) for name in value.split(",")],
}


def say(text: str) -> None:
    """Write one line to stderr."""
    os.write(2, os.fsencode(f"stand-in desktop: {text}\n"))


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


def start_panel() -> int:
    """Fork the panel; it ends when the desktop does."""
    reader, writer = os.pipe()
    panel = os.fork()
    if panel:
        os.close(reader)
        return writer
    os.close(writer)
    try:
        with open("/proc/self/comm", "wb") as comm:
            comm.write(b"panel")
    except OSError:
        pass  # only a name
    os.read(reader, 1)
    os._exit(0)


def main() -> None:
    """Run the desktop for as long as the script says."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    words = script()
    for number in words.get("ignore", ()):
        signal.signal(number, signal.SIG_IGN)
    start_panel()
    say("this is an open stand-in; the panel is up")
    end = time.monotonic() + words.get("stay", words.get("seconds", 0))
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, LONG))
    if "signal" in words:
        number = words["signal"]
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.exit(words.get("status", 0))


if __name__ == "__main__":
    main()
