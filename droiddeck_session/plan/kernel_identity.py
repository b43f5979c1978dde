# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel identity a guest sees: what `uname` answers inside a session.

proot's `--kernel-release` takes either a bare release or seven fields, each led by a backslash and closed by one more
(sysname, nodename, release, version, machine, domainname, hwcap). A hwcap of -1 leaves the real one alone; changing it,
or claiming an older release than the host's, brings back costly emulation in some tracers, so neither is offered.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from droiddeck_session.errors import PlanError, SettingError
from droiddeck_session.plan.model import Frozen

if TYPE_CHECKING:
    from droiddeck_session.facts import Uname
    from droiddeck_session.plan.capabilities import Capabilities

DEFAULT_NODENAME: Final = "DroidDeck"
KEEP_HWCAP: Final = "-1"

# RFC 1123 label: what both the kernel's nodename and programs that resolve it accept.
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
# glibc reads the numbers that lead a release, and ends the process where they are none ("kernel too old").
_RELEASE = re.compile(r"\d{1,5}\.\d{1,5}(?:\.\d{1,5})*(?:[-+.~_][\w.+~-]*)?", re.ASCII)
# linux/utsname.h: __NEW_UTS_LEN
_LONGEST_FIELD: Final = 64


class KernelIdentity(Frozen):
    """The six fields of `struct utsname` as the guest shall see them."""

    sysname: str
    nodename: str
    release: str
    version: str
    machine: str
    domainname: str = "localdomain"

    def as_option(self) -> str:
        r"""Return the value for `--kernel-release`: `\sysname\nodename\...\-1\`."""
        fields = (self.sysname, self.nodename, self.release, self.version, self.machine, self.domainname, KEEP_HWCAP)
        return "".join(f"\\{field}" for field in fields) + "\\"


class Named(NamedTuple):
    """What a plan says about the kernel's identity: the option of a tracer that sets all fields, and the host name."""

    kernel_release: str | None
    nodename: str | None


def guest_identity(host: KernelIdentity, *, nodename: str | None) -> KernelIdentity:
    """Return the host's identity under the guest's node name.

    Args:
        host: what uname(2) answers on this machine.
        nodename: the wanted node name, or None for the default.

    Raises:
        SettingError: the name is no host name.
        PlanError: a field of the host's cannot be written down.
    """
    name = node_name(nodename)
    for field, value in host:
        if fault := _fault(field, value):
            raise PlanError(
                code="BAD_KERNEL_FIELD",
                message=f"the kernel's {field} {value!r} {fault} and cannot be passed on",
                hint="use a backend that sets the host name by itself: --backend bwrap, --backend chroot",
            )
    return host.model_copy(update={"nodename": name})


def node_name(wanted: str | None) -> str:
    """Return the guest's host name.

    Raises:
        SettingError: the wanted one is no host name.
    """
    name = wanted if wanted is not None else DEFAULT_NODENAME
    if not _LABEL.fullmatch(name):
        raise SettingError(
            code="BAD_NODENAME",
            message=f"guest.hostname: {name!r} is not a host name",
            hint="use 1 to 63 letters, digits or hyphens, not led or ended by a hyphen",
        )
    return name


def named(host: Uname, capabilities: Capabilities, *, wanted: str | None) -> Named:
    """Return how the guest gets its host name from this backend, if it can have one.

    The release is never another than the host's, so a backend that can set nothing else is asked for nothing.

    Args:
        host: what uname(2) answers on this machine.
        capabilities: what the backend can set.
        wanted: the setting guest.hostname.

    Raises:
        SettingError: the name is no host name.
        PlanError: a name was asked for and the backend can set none.
    """
    name = node_name(wanted)
    if capabilities.kernel_identity == "full":
        identity = guest_identity(KernelIdentity(**host.model_dump()), nodename=wanted)
        return Named(identity.as_option(), name)
    if capabilities.nodename:
        return Named(None, name)
    if wanted is not None:
        raise PlanError(
            code="HOSTNAME_NOT_POSSIBLE",
            message=f"guest.hostname: backend {capabilities.backend} cannot show the name {wanted!r}",
            hint="leave guest.hostname unset, or use a backend that can: --backend bwrap, --backend chroot",
        )
    return Named(None, None)


def _fault(field: str, value: str) -> str:
    if "\\" in value or "\0" in value:
        return "holds a backslash or NUL"
    if len(value.encode(errors="surrogateescape")) > _LONGEST_FIELD:
        return f"is longer than {_LONGEST_FIELD} bytes"
    if field == "release" and not _RELEASE.fullmatch(value):
        return "is no release like 6.12.1-name"
    return ""
