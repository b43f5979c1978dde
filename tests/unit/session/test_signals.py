# SPDX-License-Identifier: GPL-3.0-or-later
"""What is a second request, and what is an echo of the first."""

from __future__ import annotations

import signal
import subprocess
import sys

import anyio

from droiddeck_session.session.signals import ONE_REQUEST, Requests


def asked(*steps: int | None) -> list[bool | None]:
    """Feed signals to the judge; None lets the time of one request pass."""

    async def feed() -> list[bool | None]:
        requests = Requests()
        answers = []
        for step in steps:
            if step is None:
                await anyio.sleep(1.5 * ONE_REQUEST)
            else:
                answers.append(requests.is_second(step))
        return answers

    return anyio.run(feed)


def test_once_the_session_is_over_no_request_to_end_cuts_the_tidying_short() -> None:
    # In a process of its own: it changes what signals do for good. nohup's HUP stays what it is.
    code = (
        "import anyio, os, signal\n"
        "from droiddeck_session.session import signals\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "async def session():\n"
        "    with signals.received(signals.reset()) as arrivals:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        async for signum in arrivals:\n"
        "            print(signum.name)\n"
        "            break\n"
        "anyio.run(session)\n"
        "for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):\n"
        "    signal.raise_signal(signum)\n"
        "print(*(signal.getsignal(signum).name for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)))\n"
        "print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "SIGTERM\nSIG_IGN SIG_IGN SIG_DFL\nset()\n"


def test_a_request_to_end_that_comes_before_the_receiver_waits_for_it() -> None:
    code = (
        "import anyio, os, signal\n"
        "from droiddeck_session.session import signals\n"
        "ignored = signals.reset()\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "async def session():\n"
        "    with signals.received(ignored) as arrivals:\n"
        "        async for signum in arrivals:\n"
        "            return signum.name\n"
        "print(anyio.run(session))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "SIGTERM\n"


def test_a_pipe_full_of_ended_children_loses_no_request_to_end_and_says_nothing() -> None:
    # As when a thousand children end at once: nobody reads meanwhile what a signal writes.
    code = (
        "import anyio, signal\n"
        "from droiddeck_session.session import signals\n"
        "async def session():\n"
        "    with signals.received(signals.reset()) as arrivals:\n"
        "        for _ in range(5000): signal.raise_signal(signal.SIGCHLD)\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "        print([(await anext(arrivals)).name for _ in range(2)])\n"
        "        with anyio.move_on_after(0.01):\n"
        "            print(await anext(arrivals))\n"
        "anyio.run(session)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert (done.stdout, done.stderr) == ("['SIGCHLD', 'SIGTERM']\n", "")


def test_the_same_signal_at_once_is_an_echo() -> None:
    assert asked(signal.SIGTERM, signal.SIGTERM) == [False, None]


def test_another_signal_at_once_is_part_of_the_request() -> None:
    assert asked(signal.SIGTERM, signal.SIGHUP) == [False, False]


def test_any_signal_later_is_a_second_request() -> None:
    assert asked(signal.SIGTERM, None, signal.SIGINT) == [False, True]
    assert asked(signal.SIGQUIT, None, signal.SIGQUIT) == [False, True]


def test_hups_after_a_lost_terminal_are_echoes() -> None:
    async def feed() -> list[bool | None]:
        requests = Requests()
        first = requests.is_second(signal.SIGHUP)
        requests.ignore_more_hups()
        await anyio.sleep(1.5 * ONE_REQUEST)
        return [first, requests.is_second(signal.SIGHUP), requests.seen(signal.SIGTERM)]

    assert anyio.run(feed) == [False, None, False]
