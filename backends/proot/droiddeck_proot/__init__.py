# SPDX-License-Identifier: GPL-3.0-or-later
"""The proot backend: drives whatever proot is installed."""
