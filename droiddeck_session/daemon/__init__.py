# SPDX-License-Identifier: GPL-3.0-or-later
"""The daemon: several sessions at once, driven and watched over a Unix socket."""
