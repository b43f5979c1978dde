# SPDX-License-Identifier: GPL-3.0-or-later
"""The backend interface, the registry, and the backends that need no folder of their own."""
