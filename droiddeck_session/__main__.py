# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m droiddeck_session`."""

from droiddeck_session.cli.main import main

main()
