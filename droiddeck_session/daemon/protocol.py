# SPDX-License-Identifier: GPL-3.0-or-later
"""The control protocol: one JSON object a line, over a Unix socket or over standard input and output.

A connection carries one request and its answer. The request is `{"protocol": 1, "verb": ..., ...}`. The answer is the
one line that has `ok`; lines before it are events of a stream. docs/daemon.md has the verbs and a sequence diagram.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from droiddeck_session import errors
from droiddeck_session.errors import DroiddeckError

if TYPE_CHECKING:
    from collections.abc import Mapping

PROTOCOL: Final = 1
SCHEMA: Final = 1
# An environment and a command line fit: execve(2) allows 2 MiB for both unless the stack limit was raised.
LONGEST_LINE: Final = 4 << 20
# Standard input, output and error.
STDIO: Final = 3


class ProtocolError(DroiddeckError):
    """The other side does not speak this protocol."""


class DaemonError(DroiddeckError):
    """No daemon can be reached, or it went away."""

    exit_status = errors.EXIT_UNREACHABLE


class StateError(DroiddeckError):
    """The session is not in a state in which this can be done."""

    exit_status = errors.EXIT_SESSION_STATE


class TimeoutReachedError(DroiddeckError):
    """What was waited for did not come in time."""

    exit_status = errors.EXIT_TIMEOUT


class RemoteError(DroiddeckError):
    """An error that the other side tells; its exit status is what it is there."""

    def __init__(self, *, code: str, message: str, hint: str, exit_status: int) -> None:
        super().__init__(code=code, message=message, hint=hint)
        self.exit_status = exit_status  # type: ignore[misc]  # of one instance, as the other side says


def line(document: Mapping[str, Any]) -> bytes:
    """Return an object as one line; bytes of paths that are not UTF-8 travel as escaped lone surrogates."""
    return json.dumps(document).encode() + b"\n"


def success(**fields: Any) -> dict[str, Any]:
    """Return a request's answer."""
    return {"schema": SCHEMA, "ok": True, **fields}


def failure(error: DroiddeckError) -> dict[str, Any]:
    """Return the answer to a request that failed."""
    told = {"code": error.code, "message": error.message, "hint": error.hint, "exit_status": error.exit_status}
    return {"schema": SCHEMA, "ok": False, "error": told}


def error_of(answer: Mapping[str, Any]) -> RemoteError:
    """Return the error that an answer without success tells."""
    told = answer.get("error")
    told = told if isinstance(told, dict) else {}
    status = told.get("exit_status")
    return RemoteError(
        code=str(told.get("code", "INVALID_ANSWER")),
        message=str(told.get("message", "the answer names no error")),
        hint=str(told.get("hint", "")),
        exit_status=status if isinstance(status, int) else errors.EXIT_USAGE,
    )


def parse(text: bytes) -> dict[str, Any]:
    """Return the object of one line.

    Raises:
        ProtocolError: it is none.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ProtocolError(
            code="NOT_AN_OBJECT", message="a line of the protocol is no JSON object", hint="see docs/daemon.md"
        )
    return document


def parse_request(text: bytes) -> dict[str, Any]:
    """Return a request.

    Raises:
        ProtocolError: it is none, or of another protocol.
    """
    request = parse(text)
    if request.get("protocol") != PROTOCOL or isinstance(request.get("protocol"), bool):
        raise ProtocolError(
            code="UNKNOWN_PROTOCOL",
            message=f"the request is of protocol {request.get('protocol')!r}; this side speaks {PROTOCOL}",
            hint="use the same version on both sides",
        )
    if not isinstance(request.get("verb"), str):
        raise ProtocolError(code="NO_VERB", message="the request names no verb", hint="see docs/daemon.md")
    return request
