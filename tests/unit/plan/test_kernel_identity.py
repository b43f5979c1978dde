# SPDX-License-Identifier: GPL-3.0-or-later
"""Laws of the kernel identity string, and what is asked of a backend that can set less."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droiddeck_session.errors import PlanError, SettingError
from droiddeck_session.facts import Uname
from droiddeck_session.plan.capabilities import Capabilities
from droiddeck_session.plan.kernel_identity import KernelIdentity, guest_identity, named

HOST = KernelIdentity(
    sysname="Linux", nodename="workshop", release="6.12.38", version="#1 SMP PREEMPT Tue Sep 1", machine="aarch64"
)
UNAME = Uname(**HOST.model_dump(exclude={"domainname"}))
FULL = Capabilities(backend="full", available=True, kernel_identity="full")
RELEASE = Capabilities(backend="release", available=True, kernel_identity="release")
NODENAME = Capabilities(backend="uts", available=True, nodename=True)

field = st.text(st.characters(exclude_characters="\\\0", exclude_categories=["Cs"]), max_size=64)


@given(st.builds(KernelIdentity, sysname=field, nodename=field, release=field, version=field, machine=field))
def test_fields_survive_the_option(identity: KernelIdentity) -> None:
    head, *fields, tail = identity.as_option().split("\\")
    assert (head, tail) == ("", "")
    assert fields == [*identity.model_dump().values(), "-1"]


@pytest.mark.parametrize("name", ["", "-deck", "deck-", "a b", "a_b", "x" * 64, "dé", "deck\n"])
def test_a_name_that_is_no_host_name_is_refused_by_name(name: str) -> None:
    with pytest.raises(SettingError, match=r"guest\.hostname") as refusal:
        guest_identity(HOST, nodename=name)
    assert refusal.value.code == "BAD_NODENAME"


@pytest.mark.parametrize(
    "release", ["6.18.999-x", "5.15.90.1-microsoft-standard-WSL2", "6.1.75-android14-11-g0a", "4.4"]
)
def test_a_release_that_hosts_have_is_passed_on(release: str) -> None:
    host = HOST.model_copy(update={"release": release})
    assert guest_identity(host, nodename=None).release == release


@pytest.mark.parametrize("release", ["", "x", "6", "6.", "6.1 spaced", "6.1.\n", "six.one"])
def test_a_release_that_glibc_would_misread_is_refused(release: str) -> None:
    # Case 61.
    with pytest.raises(PlanError, match="release") as refusal:
        guest_identity(HOST.model_copy(update={"release": release}), nodename=None)
    assert refusal.value.code == "BAD_KERNEL_FIELD"


@pytest.mark.parametrize(("name", "value"), [("version", "a\\b"), ("machine", "x\0"), ("sysname", "L" * 65)])
def test_a_field_that_cannot_be_written_down_is_named(name: str, value: str) -> None:
    with pytest.raises(PlanError, match=name):
        guest_identity(HOST.model_copy(update={name: value}), nodename=None)


def test_only_what_a_backend_can_set_is_asked_of_it() -> None:
    assert named(UNAME, FULL, wanted=None) == (
        "\\Linux\\DroidDeck\\6.12.38\\#1 SMP PREEMPT Tue Sep 1\\aarch64\\localdomain\\-1\\",
        "DroidDeck",
    )
    assert named(UNAME, NODENAME, wanted="deck-7") == (None, "deck-7")
    assert named(UNAME, RELEASE, wanted=None) == (None, None)


def test_a_name_that_was_asked_for_is_not_dropped_silently() -> None:
    with pytest.raises(PlanError, match="deck-7") as refusal:
        named(UNAME, RELEASE, wanted="deck-7")
    assert refusal.value.code == "HOSTNAME_NOT_POSSIBLE"
