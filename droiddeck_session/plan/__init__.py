# SPDX-License-Identifier: GPL-3.0-or-later
"""Pure: request, settings, facts and capabilities in; a frozen plan out."""
