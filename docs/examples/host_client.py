#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of `droiddeck-session host` that stands alone: it starts a program, prints its events, ends as it ends.

    host_client.py PROGRAM-THAT-IS-DROIDDECK-SESSION [ARGUMENTS] -- COMMAND [ARGUMENTS]

An app does the same through HostProcess: lines of JSON to standard input, lines of JSON from standard output. When
this process dies, the pipe closes, and the session ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

OWN_FAILURE = 125


class Host:
    """The program that was started, and what it has answered."""

    def __init__(self, argv: list[str]) -> None:
        self.process = subprocess.Popen([*argv, "host"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answers: dict[int, dict[str, Any]] = {}

    def say(self, number: int, verb: str, **fields: Any) -> None:
        """Send one request."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"protocol": 1, "id": number, "verb": verb, **fields}) + "\n")
        self.process.stdin.flush()

    def answer(self, number: int) -> dict[str, Any]:
        """Return the answer to a request; print the events that come meanwhile."""
        assert self.process.stdout
        while number not in self.answers:
            line = json.loads(self.process.stdout.readline())
            if "ok" in line:
                self.answers[line["id"]] = line
            else:
                sys.stdout.write(f"{line['event']}\n")
        return self.answers.pop(number)

    def end(self) -> None:
        """Close the pipe and wait until all has ended."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def main(words: list[str]) -> int:
    """Run one session and return its status."""
    between = words.index("--")
    host = Host(words[:between])
    host.say(1, "start", kind="run", argv=words[between + 1 :], environ=dict(os.environ))
    started = host.answer(1)
    if not started["ok"]:
        sys.stderr.write(f"{started['error']['message']}\n")
        return OWN_FAILURE
    host.say(2, "events", session=started["session"], follow=True)
    host.say(3, "wait", session=started["session"], **{"for": "idle"})
    host.answer(2)
    status: int = host.answer(3)["status"]
    host.end()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
