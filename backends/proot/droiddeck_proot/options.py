# SPDX-License-Identifier: GPL-3.0-or-later
"""What a proot says about itself: the options that its `--help` lists. What they do is for the probe to find out."""

from __future__ import annotations

import re
from typing import Final

# `  -k *string*, --kernel-release=*string*`: an option's line is indented less than its text and begins with a dash.
_OPTION_LINE: Final = re.compile(r"^ {0,4}-\S.*$", re.MULTILINE)
_OPTION: Final = re.compile(r"(?:^|[\s,])--?([A-Za-z0-9][A-Za-z0-9-]*)")
_VERSION: Final = re.compile(r"\bproot[ -]v?([0-9][^\s:]*)", re.IGNORECASE)


def known_options(help_text: str) -> tuple[str, ...]:
    """Return the options of a `--help` text, without dashes, sorted."""
    lines = _OPTION_LINE.findall(help_text)
    return tuple(sorted({name for line in lines for name in _OPTION.findall(line)}))


def version(help_text: str) -> str:
    """Return what the program calls itself; empty where it does not say."""
    found = _VERSION.search(help_text)
    return found.group(1) if found else ""
