# SPDX-License-Identifier: GPL-3.0-or-later
"""What is a second request, and what is an echo of the first."""

from __future__ import annotations

import signal

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
