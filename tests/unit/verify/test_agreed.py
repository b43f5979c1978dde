# SPDX-License-Identifier: GPL-3.0-or-later
"""What may differ under emulated ids, and what may not."""

from __future__ import annotations

import pytest

from droiddeck_session.diagnostics.verify.agreed import is_agreed, is_owner_alone
from droiddeck_session.diagnostics.verify.run import Answer


def said(text: str, *changes: str) -> Answer:
    return Answer(path_class="rights", refusal="", text=text, changes=changes)


@pytest.mark.parametrize(
    ("case", "expected", "got"),
    [
        ("chown:/ordinary/file", "EINVAL", "0"),
        ("fchownat-nofollow@ordinary:file", "EINVAL", "0"),
        ("access-w:/ordinary/closed", "0", "EACCES"),
        ("openat@ordinary:closed", "3 file <root/ordinary/closed> flags 8800", "EACCES"),
        ("watch:/links/closed", "watch 1 of <root/ordinary/closed>", "EACCES"),
        ("getxattr:/ordinary/closed", "ENODATA", "EACCES"),
        ("access-w:/proc/self/fdinfo/104", "0", "EACCES"),
    ],
)
def test_what_only_a_namespaces_root_can_is_agreed_on(case: str, expected: str, got: str) -> None:
    assert is_agreed(case, said(expected), said(got))
    assert is_agreed(case, said(expected, "~ what it did"), said(got))
    assert not is_agreed(case, said(expected), said(got, "~ something done"))


@pytest.mark.parametrize(
    ("case", "expected", "got"),
    [
        ("chown:/ordinary/file", "ENOENT", "0"),
        ("chown:/ordinary/file", "EINVAL", "EPERM"),
        ("chmod:/ordinary/file", "EINVAL", "0"),
        ("access-w:/ordinary/closed", "ENOENT", "EACCES"),
        ("access-w:/ordinary/closed", "0", "ENOENT"),
        ("access-w:/ordinary/file", "0", "EACCES"),
        ("openat:/ordinary/closed-folder/inside", "3 file <root/ordinary/closed-folder/inside>", "EACCES"),
        ("openat:/ordinary/closed", "3 file <root/etc/passwd> flags 8800", "EACCES"),
    ],
)
def test_all_else_differs(case: str, expected: str, got: str) -> None:
    assert not is_agreed(case, said(expected), said(got))


def test_only_an_owner_without_an_id_in_the_namespace_may_be_shown_as_he_is() -> None:
    expected = said("file 0644 65534:65534 12 bytes")
    assert is_owner_alone(expected, said("file 0644 0:0 12 bytes"))
    assert not is_owner_alone(expected, said("file 0600 0:0 12 bytes"))
    assert not is_owner_alone(expected, said("file 0644 0:0 12 bytes", "~ something done"))
    assert not is_owner_alone(said("file 0644 0:0 12 bytes"), said("file 0644 7:7 12 bytes"))
