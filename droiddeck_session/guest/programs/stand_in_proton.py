#!/usr/bin/python3 -ISB
# SPDX-License-Identifier: GPL-3.0-or-later
"""proton: open stand-in for Proton's launcher: a wineserver that outlives the game a little, and then the game.

    proton waitforexitandrun|run|runinprefix GAME [ARGS...]

$DROIDDECK_STAND_IN_PROTON may hold `linger=SECONDS`: how long the wineserver stays when the last program that holds its
connection is gone (0.1 without). As with Wine, `waitforexitandrun` first waits for the prefix's previous wineserver.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import sys
import time

USAGE, CANNOT_RUN, NOT_FOUND = 64, 126, 127  # EX_USAGE of sysexits.h; the others as env(1)
SCRIPT = "DROIDDECK_STAND_IN_PROTON"
WAITS_FOR_PREVIOUS = {"waitforexitandrun": True, "run": False, "runinprefix": False}


def say(text: str) -> None:
    """Write one line to stderr; bytes that are not UTF-8 survive."""
    os.write(2, os.fsencode(f"stand-in proton: {text}\n"))


def linger_seconds() -> float:
    """Read the script."""
    words = os.environ.get(SCRIPT, "linger=0.1")
    name, _, value = words.strip().partition("=")
    try:
        if name == "linger":
            return float(value)
    except ValueError:
        pass
    say(f"{SCRIPT}: not linger=SECONDS: {words}")
    sys.exit(USAGE)


def start_wineserver(lock: int, seconds: float) -> None:
    """Fork a daemon that holds the prefix's lock until every holder of its connection, and then the time, is gone."""
    reader, connection = os.pipe()
    if os.fork():
        os.close(reader)
        os.set_inheritable(connection, True)  # noqa: FBT003 - as with Wine, each of the game's programs holds it
        return
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.close(connection)
    nothing = os.open("/dev/null", os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    try:
        with open("/proc/self/comm", "wb") as comm:
            comm.write(b"wineserver")
    except OSError:
        pass  # only a name
    os.read(reader, 1)
    time.sleep(seconds)
    os.close(lock)
    os._exit(0)


def main() -> None:
    """Start the wineserver and become the game."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    verb, game = sys.argv[1:2], sys.argv[2:]
    if not game or verb[0] not in WAITS_FOR_PREVIOUS:
        say(f"usage: proton {'|'.join(WAITS_FOR_PREVIOUS)} GAME [ARGS...]")
        sys.exit(USAGE)
    seconds = linger_seconds()
    app = os.environ.get("SteamAppId", "0").replace("/", "_")
    say(f"this is an open stand-in; {verb[0]} for AppId {app}")
    prefix = os.path.join(os.environ.get("XDG_RUNTIME_DIR", "/tmp"), f"stand-in-wineserver-{app}.lock")  # noqa: S108 - the guest's /tmp is the session's own
    lock = os.open(prefix, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX if WAITS_FOR_PREVIOUS[verb[0]] else fcntl.LOCK_EX | fcntl.LOCK_NB)
        start_wineserver(lock, seconds)
    except BlockingIOError:
        say("joins the prefix's running wineserver")
    for changed_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(changed_by_python, signal.SIG_DFL)
    try:
        os.execv(game[0], game)
    except OSError as problem:
        say(f"cannot run {game[0]}: {problem.strerror}")
        sys.exit(NOT_FOUND if problem.errno in (errno.ENOENT, errno.ENOTDIR) else CANNOT_RUN)


if __name__ == "__main__":
    main()
