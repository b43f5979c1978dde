# SPDX-License-Identifier: GPL-3.0-or-later
"""`droiddeck-session verify`: do the backends answer as the kernel does?"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

import click

from droiddeck_session.cli.completion import backend_names
from droiddeck_session.cli.output import answer, environment, json_option
from droiddeck_session.cli.setting_flags import flag_options, given_flags
from droiddeck_session.errors import EXIT_CHECK_FAILED, EXIT_OK
from droiddeck_session.interruption import tidy_up_first
from droiddeck_session.printable import exact

if TYPE_CHECKING:
    from droiddeck_session.diagnostics.verify.compare import Comparison, Difference
    from droiddeck_session.diagnostics.verify.run import Run
    from droiddeck_session.diagnostics.verify.suite import Suite

# Of one kind of difference so many are shown to a person; --json has all.
_SHOWN: Final = 2


@click.command()
@click.option(
    "--backend", "backends", multiple=True, metavar="BACKEND", shell_complete=backend_names,
    help="Only this one; may be given again.",
)  # fmt: skip
@click.option(
    "--case", "cases", multiple=True, metavar="ID", help="Only this case, * for anything; may be given again."
)
@click.option("--thorough", is_flag=True, help="Every call with every path; takes minutes.")
@click.option("--keep", is_flag=True, help="Leave the files of each run and print the commands that ask.")
@json_option()
@flag_options(("guest.name", "guest.identity"))
def verify(
    *, backends: tuple[str, ...], cases: tuple[str, ...], thorough: bool, keep: bool, as_json: bool, **options: Any
) -> int:
    """Ask each backend thousands of awkward questions about files and compare with what the kernel answers.

    Without --backend, all that are there and confine. Nothing is written to the guest.

    Exit status: 0 all answers are equal, 1 some differ.
    """
    from droiddeck_session.diagnostics.verify.suite import prepare  # noqa: PLC0415 - heavy imports

    tidy_up_first()
    suite = prepare(environment(), given_flags(options), backends=backends, cases=cases, thorough=thorough, keep=keep)
    told = _as_json(suite) if as_json else _as_text(suite, one_by_one=bool(cases))
    return EXIT_OK if told else EXIT_CHECK_FAILED


def _as_json(suite: Suite) -> bool:
    truth = suite.truth()
    compared = [comparison for comparison, _ in suite.compared(truth)]
    equal = all(comparison.equal for comparison in compared)
    answer(
        {
            "equal": equal,
            "truth": {"backend": truth.backend, "cases": len(truth.answers), "seconds": round(truth.seconds, 2)},
            "backends": [_document(comparison) for comparison in compared],
            "skipped": suite.skipped(),
        }
    )
    return equal


def _document(comparison: Comparison) -> dict[str, object]:
    return {
        "backend": comparison.backend,
        "compared": comparison.compared,
        "refused": comparison.refused,
        "different": len(comparison.differences),
        "seconds": round(comparison.seconds, 2),
        "ending": comparison.ending,
        "groups": [
            {
                "call": call,
                "path_class": path_class,
                "count": len(found),
                "cases": [{"case": one.case, "expected": one.expected, "got": one.got} for one in found],
            }
            for (call, path_class), found in comparison.groups().items()
        ],
    }


def _as_text(suite: Suite, *, one_by_one: bool) -> bool:
    for name, why_not in suite.skipped().items():
        click.echo(f"{name}: not asked: {exact(why_not)}")
    truth = suite.truth()
    click.echo(f"{truth.backend}: {len(truth.answers)} answers in {truth.seconds:.1f} s, the kernel's own")
    equal = True
    for comparison, answered in suite.compared(truth):
        equal &= comparison.equal
        same = comparison.compared - comparison.refused - len(comparison.differences)
        click.echo(
            f"{comparison.backend}: {same} equal, {comparison.refused} refused as agreed, "
            f"{len(comparison.differences)} different in {comparison.seconds:.1f} s"
        )
        if comparison.ending:
            click.echo(f"  it ended before all was asked: {exact(comparison.ending)}")
        for (call, path_class), found in comparison.groups().items():
            click.echo(f"  {call}, {path_class}: {len(found)}")
            for difference in found[:_SHOWN]:
                _show(comparison.backend, difference, suite)
        if one_by_one:
            _show_agreed(comparison, answered)
        if suite.keep:
            click.echo(f"  command: {exact(answered.command)}")
    return equal


def _show(backend: str, difference: Difference, suite: Suite) -> None:
    click.echo(f"    {exact(difference.case)}")
    for title, lines in (("kernel", difference.expected), (backend, difference.got)):
        for number, line in enumerate(lines):
            click.echo(f"      {title if number == 0 else '':<9} {exact(line)}")
    identity = " --identity root" if suite.identity.emulated else ""
    case = exact(shlex.quote(difference.case))
    click.echo(f"      again: droiddeck-session verify{identity} --backend {backend} --case {case}")


def _show_agreed(comparison: Comparison, answered: Run) -> None:
    """Show the answers that are equal."""
    different = {difference.case for difference in comparison.differences}
    for case, found in answered.answers.items():
        if case not in different:
            click.echo(f"  {exact(case)}: {exact(' / '.join((found.text, *found.changes)))}")
