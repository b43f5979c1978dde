# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives any proot: Debian's, Termux's, a patched one."""
