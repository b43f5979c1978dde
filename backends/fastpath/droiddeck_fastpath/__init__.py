# SPDX-License-Identifier: GPL-3.0-or-later
"""The fastpath backend: drives our own tracer."""
