# SPDX-License-Identifier: GPL-3.0-or-later
"""The program `droiddeck-session`, and `python -m droiddeck_session`."""

import signal


def main() -> None:
    """Run the command line.

    Until a verb has begun something there is nothing to tidy up: INT ends this process as TERM and HUP do, at once and
    without a word, also while modules are imported; `interruption.py` has what comes later. Of an INT before this,
    while Python itself starts, Python complains.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from droiddeck_session.cli.main import main as command_line  # noqa: PLC0415 - after the line above

    command_line()


if __name__ == "__main__":
    main()
