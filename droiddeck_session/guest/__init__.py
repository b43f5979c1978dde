# SPDX-License-Identifier: GPL-3.0-or-later
"""The rootfs (create, import, list, remove) and a session's staged files; `programs/` is what runs inside."""
