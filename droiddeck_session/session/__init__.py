# SPDX-License-Identifier: GPL-3.0-or-later
"""One running session: preparation, folder, supervision, events, sweep."""
