# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `droiddeck-session`: a table of verbs, each imported only when it is called.

This module and click are all that is imported before the verb is known; a test holds that.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from droiddeck_session import __version__, interruption
from droiddeck_session.cli.importing import importing
from droiddeck_session.cli.output import WRAPPING_VERBS, Form, fail
from droiddeck_session.errors import (
    EXIT_OWN_FAILURE,
    EXIT_SIGNAL_BASE,
    EXIT_USAGE,
    DroiddeckError,
    FilesError,
    UsageError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

# verb: module of cli/, what it is for (shown by --help without importing the module)
VERBS: Final = {
    "run": ("session", "run a program in a guest"),
    "steam": ("session", "start the Steam client in a guest"),
    "desktop": ("session", "start the guest's desktop"),
    "start": ("start", "start a session that the daemon runs"),
    "stop": ("control", "end a session of the daemon"),
    "kill": ("control", "end a session of the daemon at once"),
    "suspend": ("control", "stop all processes of a session"),
    "resume": ("control", "let a suspended session go on"),
    "wait": ("control", "wait until a session is ready, over or failed"),
    "status": ("control", "list the daemon's sessions"),
    "ps": ("control", "list a session's processes"),
    "stats": ("control", "tell what a session uses"),
    "top": ("top", "show what a session uses, live"),
    "events": ("control", "print a session's events"),
    "logs": ("control", "print or copy what a session left"),
    "launch": ("control", "let a session's Steam client start a game"),
    "quit": ("control", "end a game of a session"),
    "attach": ("control", "open a shell in a session's guest"),
    "guest-exec": ("control", "run a program in a session's guest"),
    "daemon": ("daemon", "run sessions for other processes"),
    "host": ("daemon", "the same for one client on standard streams"),
    "plan": ("plan", "show what run, steam or desktop would do, and why"),
    "guest": ("guest", "make, import, list, show, remove and enter guests"),
    "doctor": ("doctor", "check this machine and its guests, with a fix for each fault"),
    "verify": ("verify", "compare the backends with the kernel, answer by answer"),
    "settings": ("settings", "show, explain and validate settings"),
    "completion": ("completion", "print the shell completion for bash, zsh or fish"),
    "version": ("version", "print the version"),
}


class _ReaderGoneError(Exception):
    """Whoever read our standard output has closed it; click, which has a status of its own for that, does not know."""


@contextlib.contextmanager
def _telling_of_a_lost_reader() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise _ReaderGoneError from None


class VerbGroup(click.Group):
    """A group that knows its verbs by name and imports the one that is called."""

    @_telling_of_a_lost_reader()
    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the command line; `--help` and `--version` print here."""
        return super().make_context(info_name, args, parent, **extra)

    @_telling_of_a_lost_reader()
    def invoke(self, ctx: click.Context) -> object:
        """Run the verb."""
        return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the verbs in the table's order."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import the verb's module and return its command of the same name."""
        if cmd_name not in VERBS:
            return None
        with importing():
            module = importlib.import_module(f"droiddeck_session.cli.{VERBS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """List the verbs without importing their modules."""
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, text) for verb, (_, text) in VERBS.items()])


@click.command(cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="droiddeck-session")
def droiddeck_session() -> None:
    """Start, watch and end Steam, Proton and desktop sessions in a Linux rootfs, without root or kernel containers.

    Exit status: run, steam, desktop, attach, guest-exec and guest shell end as the program did (125 our own failure,
    126 cannot run, 127 not found, 128+n killed by signal n); see droiddeck-session(1) for the other verbs.
    """


def _verb(arguments: list[str]) -> str:
    """Return the verb of a command line, `guest shell` as two words, empty where there is none."""
    words = [word for word in arguments if not word.startswith("-")][:2]
    return " ".join(words) if words == ["guest", "shell"] else "".join(words[:1])


def _in_our_form(error: click.ClickException) -> UsageError:
    """Return click's complaint about a command line as an error of ours: one line that names the thing, and the fix."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context else "droiddeck-session"
    message = f"{command.removeprefix('droiddeck-session ')}: {error.format_message()}"
    return UsageError(code="USAGE", message=message, hint=f"{command} --help")


def _asked_for_json(error: click.ClickException, arguments: list[str]) -> bool:
    """Whether a command line that click could not take apart asks for JSON, by a word that can be no program's own."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    known = context is not None and any("--json" in parameter.opts for parameter in context.command.params)
    return known and "--json" in arguments[: arguments.index("--") if "--" in arguments else None]


def _as_files_error(error: OSError) -> FilesError:
    """Return what no part of the program expected of a file as an error of ours that names the file."""
    named = isinstance(error.filename, (str, bytes))
    return FilesError(
        code="IO",
        message=f"{os.fsdecode(error.filename)!r}: {error.strerror}" if named else f"read or write error: {error}",
        hint="make room or give access there; droiddeck-session doctor looks at the folders that are used",
    )


def _give_up_on_lost_output() -> None:
    """Point what cannot be written to nowhere: Python would try once more at its end, complain, and end with 120.

    Source: Python's library reference, signal, "Note on SIGPIPE".
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit status."""
    try:
        _run(sys.argv[1:] if arguments is None else arguments)
    finally:
        interruption.end_if_asked()


def _run(arguments: list[str]) -> NoReturn:
    verb = _verb(arguments)
    usage_status = EXIT_OWN_FAILURE if verb in WRAPPING_VERBS else EXIT_USAGE
    form = Form()
    try:
        status = droiddeck_session.main(arguments, prog_name="droiddeck-session", standalone_mode=False, obj=form)
    except DroiddeckError as error:
        interruption.end_if_asked()
        fail(error, verb=verb, as_json=form.json)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(usage_status)
    except click.ClickException as error:
        fail(_in_our_form(error), verb=verb, as_json=form.json or _asked_for_json(error, arguments))
    except click.Abort:
        sys.exit(EXIT_SIGNAL_BASE + signal.SIGINT)
    except _ReaderGoneError:
        # There is nobody to tell: end as SIGPIPE ends others.
        sys.exit(EXIT_SIGNAL_BASE + signal.SIGPIPE)
    except OSError as error:
        interruption.end_if_asked()
        fail(_as_files_error(error), verb=verb, as_json=form.json)
    finally:
        _give_up_on_lost_output()
    sys.exit(status if isinstance(status, int) else 0)
