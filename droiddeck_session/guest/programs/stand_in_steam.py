#!/usr/bin/python3 -ISB
# SPDX-License-Identifier: GPL-3.0-or-later
"""steam: open stand-in for the Steam client: web helpers, games through reaper and Proton, one running instance.

    steam [steam://rungameid/ID | -applaunch ID]...     start, or ask the running client
    steam -shutdown                                     ask the running client to end

Other arguments do nothing. $DROIDDECK_STAND_IN_STEAM holds words, separated by spaces (`game=480` without):

    game=ID              the game that is started when no argument asks for one
    seconds=S stay       how long it runs on when no game runs; `stay`: until it is told
    updates=N            the first N runs of a session end with 42 at once, as after an update
    status=N signal=NAME how it ends
    ignore=shutdown,TERM requests and signals that do nothing to it
    renderers=N calls=N  size of the web-helper tree and of its bursts (3 and 2000)
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # the name that checkers know; importing typing for it would triple the start-up
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

USAGE, UPDATED = 64, 42  # EX_USAGE of sysexits.h; what the real client ends with when it has updated itself
SCRIPT, DEFAULT = "DROIDDECK_STAND_IN_STEAM", "game=480"
HERE = os.path.dirname(os.path.realpath(__file__))
RUNTIME = os.environ.get("XDG_RUNTIME_DIR", "/tmp")  # noqa: S108 - the guest's /tmp is the session's own
CHANGED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)  # ignored by the interpreter, which exec would hand on
RUN_URLS = ("steam://rungameid/", "steam://run/")
LARGEST_ID, ID_DIGITS = 2**64 - 1, 20
PATIENCE = 2.0  # with games after a shutdown, and with a first client that is just starting


def signal_number(name: str) -> int:
    """Return a signal's number from `15`, `TERM` or `SIGTERM`."""
    return signal.Signals(int(name)) if name.isdecimal() else signal.Signals["SIG" + name.replace("SIG", "", 1)]


WORDS: dict[str, Callable[[str], Any]] = {
    "game": int,
    "seconds": float,
    "stay": lambda _: float("inf"),
    "updates": int,
    "status": int,
    "signal": signal_number,
    "ignore": lambda value: [name if name == "shutdown" else signal_number(name) for name in value.split(",")],
    "renderers": int,
    "calls": int,
}


def say(text: str) -> None:
    """Write one line to stderr; bytes that are not UTF-8 survive."""
    os.write(2, os.fsencode(f"stand-in steam: {text}\n"))


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


def requests(words: list[str]) -> list[str]:
    """Return what the arguments ask for, as the lines that go through the pipe: `shutdown`, `game ID`."""
    wanted = []
    for word, following in zip(words, [*words[1:], ""]):  # noqa: B905 - zip's strict came with 3.10
        if word == "-shutdown":
            wanted.append("shutdown")
        elif word == "-applaunch":
            wanted.append(f"game {following}")
        elif word.startswith(RUN_URLS):
            wanted.append(f"game {word.split('/')[3]}")
        elif word.startswith("steam://"):
            say(f"nothing is done for {word}")
    return [line for line in wanted if "\n" not in line]


def is_game_id(text: str) -> bool:
    """Tell whether a text is a positive 64-bit number, written plainly."""
    plain = text.isascii() and text.isdecimal() and len(text) <= ID_DIGITS and text[0] != "0"
    return plain and int(text) <= LARGEST_ID


def becomes_the_client(pipe: str) -> bool:
    """Take the lock that one client of a session holds until it ends."""
    try:
        os.mkfifo(pipe, 0o600)
    except FileExistsError:
        pass
    lock = os.open(os.path.join(RUNTIME, "stand-in-steam.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def hand_over(pipe: str, lines: list[str]) -> None:
    """Give the requests to the running client."""
    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            break
        except OSError as problem:
            if problem.errno != errno.ENXIO or time.monotonic() > give_up:
                say(f"the running client does not answer: {problem.strerror}")
                sys.exit(1)
        time.sleep(0.01)
    os.write(writer, os.fsencode("".join(f"{line}\n" for line in lines)))
    say(f"given to the running client: {', '.join(lines) or 'nothing'}")


def run_number() -> int:
    """Count this session's runs."""
    counter = os.open(os.path.join(RUNTIME, "stand-in-steam.runs"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    number = int(os.read(counter, 16) or b"0") + 1
    os.pwrite(counter, b"%d" % number, 0)
    os.close(counter)
    return number


class Client:
    """The running client: its helpers, its games and the pipe through which it is asked."""

    def __init__(self, words: dict[str, Any], pipe: str) -> None:
        self.words = words
        self.games: set[int] = set()
        self.until = float("inf")  # the time when it ends if no game runs
        self.stopping = False
        ignored = [number for number in words.get("ignore", ()) if number != "shutdown"]
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        self.reset = (*CHANGED_BY_PYTHON, *ignored)
        self.requests = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)  # O_RDWR: never at its end
        self.child_ended, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)

    def start_helpers(self) -> None:
        """Start the web-helper tree; it lives until `lifetime` is closed, however this process ends."""
        renderers = self.words.get("renderers", 3)
        argv = [os.path.join(HERE, "web-helper"), "--type=browser", f"--renderers={renderers}"]
        argv.append(f"--calls={self.words.get('calls', 2000)}")
        stdin, self.lifetime = os.pipe()
        self.dots, stdout = os.pipe()
        ends = [(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, stdout, 1)]
        self.browser = os.posix_spawn(argv[0], argv, os.environ, file_actions=ends, setsigdef=self.reset)
        os.close(stdin)
        os.close(stdout)
        self.busy_helpers = renderers + 1

    def start_game(self, text: str) -> None:
        """Start a game as Steam does: below a reaper, through its compatibility tool."""
        if not is_game_id(text):
            say(f"not a game's id: {text}")
            return
        app = str(int(text) >> 32 or text)  # a shortcut's id carries its own AppId in the upper half
        proton = [os.path.join(HERE, "proton"), "waitforexitandrun", os.path.join(HERE, "game")]
        game_env = os.path.join(os.path.dirname(HERE), "droiddeck-game-env")
        argv = [os.path.join(HERE, "reaper"), "SteamLaunch", f"AppId={app}", "--", game_env, *proton]
        environment = {**os.environ, "SteamAppId": app, "SteamGameId": text}
        self.games.add(os.posix_spawn(argv[0], argv, environment, setsigdef=self.reset))
        say(f"started game {text}")

    def take_request(self, line: str) -> None:
        """Do what one line of the pipe asks for."""
        name, _, value = line.partition(" ")
        if name == "game":
            self.start_game(value)
        elif "shutdown" in self.words.get("ignore", ()):
            say("ignores the request to end")
        else:
            say("ends as it was asked to")
            self.stopping = True
            self.until = time.monotonic() + PATIENCE
            for reaper in self.games:
                os.kill(reaper, signal.SIGTERM)

    def reap(self) -> None:
        """Take the status of each child that ended."""
        while self.games or self.browser:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            if pid == self.browser:
                self.browser = 0
                continue
            self.games.remove(pid)
            code = os.WTERMSIG(status) + 128 if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            say(f"a game ended with {code}")

    def finished(self) -> bool:
        """Tell whether there is nothing to wait for any more."""
        over = time.monotonic() >= self.until
        if self.stopping:
            return over or not self.games
        return over and not self.games

    def time_left(self) -> float | None:
        """Return how long to wait for events, in milliseconds; None if only they can change anything."""
        if self.until == float("inf") or (self.games and not self.stopping):
            return None
        return max(0.0, self.until - time.monotonic()) * 1000 + 1

    def run(self, lines: list[str]) -> None:
        """Run until the script or a request ends it."""
        self.start_helpers()
        events = select.poll()
        for descriptor in (self.requests, self.child_ended, self.dots):
            events.register(descriptor, select.POLLIN)
        while not self.finished():
            for descriptor, _ in events.poll(self.time_left()):
                got = os.read(descriptor, 4096)
                if descriptor == self.child_ended:
                    self.reap()
                elif descriptor == self.requests:
                    for line in os.fsdecode(got).splitlines():
                        self.take_request(line)
                else:
                    self.busy_helpers -= len(got) or self.busy_helpers  # at its end they are all gone
                    if not self.busy_helpers:
                        events.unregister(descriptor)
                        self.get_ready(lines)
        os.close(self.lifetime)
        if self.browser:
            os.waitpid(self.browser, 0)

    def get_ready(self, lines: list[str]) -> None:
        """The helpers have settled: start what was asked for at the start, and the time."""
        if self.stopping:
            return
        self.until = time.monotonic() + self.words.get("stay", self.words.get("seconds", 0))
        say("the web helpers have done their bursts")
        for line in lines:
            self.take_request(line)


def main() -> None:
    """Ask the running client, or become it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    words = script()
    lines = requests(sys.argv[1:])
    pipe = os.path.join(RUNTIME, "stand-in-steam.pipe")
    if not becomes_the_client(pipe):
        hand_over(pipe, lines)
        return
    if "shutdown" in lines:
        say("no client is running")
        return
    say("this is an open stand-in for the Steam client; nothing of Valve's is in it")
    for line in lines:
        say(f"asked for {line}")
    if "updates" in words and run_number() <= words["updates"]:
        say("ends as after an update of itself")
        sys.exit(UPDATED)
    if not lines and "game" in words:
        lines = [f"game {words['game']}"]
    Client(words, pipe).run(lines)
    if "signal" in words:
        number = words["signal"]
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.exit(words.get("status", 0))


if __name__ == "__main__":
    main()
