# SPDX-License-Identifier: GPL-3.0-or-later
"""Any text as one that a terminal shows exactly, on one line."""

from __future__ import annotations


def exact(text: str) -> str:
    """Return a text that can be printed: bytes that are not UTF-8 and control characters shown as escapes."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )
