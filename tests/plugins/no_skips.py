# SPDX-License-Identifier: GPL-3.0-or-later
"""A pytest plugin for continuous integration: a test that is skipped has not run, so it fails.

Loaded by `./dev test` where CI=true, with `-p plugins.no_skips`. An expected failure (xfail) stays what it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def _failed_where_skipped(report: Report) -> Report:
    if report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return report
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid}: skipped where every test has to run: {reason.removeprefix('Skipped: ')}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test into a failed one."""
    return _failed_where_skipped((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a skipped module into one that cannot be collected."""
    return _failed_where_skipped((yield))
