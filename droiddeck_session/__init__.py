# SPDX-License-Identifier: GPL-3.0-or-later
"""droiddeck-session: start, watch and end whole Linux sessions where no kernel container can run them."""

__version__ = "0.1.0.dev0"
