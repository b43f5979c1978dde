# SPDX-License-Identifier: GPL-3.0-or-later
"""What this machine and this guest are: the only impure input of `plan/`, gathered once and then a frozen value."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, PlainValidator, WithJsonSchema

# A path as the kernel has it: str with surrogateescape, which pydantic's own str refuses.
PathText = Annotated[str, PlainValidator(str), WithJsonSchema({"type": "string"})]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Uname(_Frozen):
    """What uname(2) answers."""

    sysname: str
    nodename: str
    release: str
    version: str
    machine: str


class HostPath(_Frozen):
    """One host path that the plan may bind.

    Attributes:
        kind: what it is after links; `missing` also for a dangling link, `hidden` where a parent may not be searched.
        resolved: the path with links resolved; the path itself when missing.
        readable: open(2) for reading succeeds (for a folder: it can be listed).
    """

    kind: Literal["directory", "file", "other", "missing", "hidden"]
    resolved: PathText
    readable: bool


class GuestPath(_Frozen):
    """One path of the rootfs, looked up in guest terms: no link leads out of the rootfs.

    Attributes:
        kind: what the rootfs has there, after links.
        resolved: the guest path with the guest's links resolved, as far as it exists.
        executable: a regular file with an execute bit.
    """

    kind: Literal["directory", "file", "other", "missing"]
    resolved: PathText
    executable: bool = False


class GuestFacts(_Frozen):
    """The rootfs.

    Attributes:
        name: as the user says it.
        root: absolute host path, links resolved.
        read_only: a new entry cannot be made at its top.
        paths: what was asked about, by guest path as it was asked.
        users: uids that the guest's own /etc/passwd knows, with login name and home.
        groups: gids that its /etc/group knows.
        made_for: machine (as uname has it) that its /usr/bin/env is for, or None if that could not be read.
    """

    name: str
    root: PathText
    read_only: bool
    paths: dict[PathText, GuestPath]
    users: dict[int, tuple[str, PathText]]
    groups: frozenset[int]
    made_for: str | None


class Facts(_Frozen):
    """All that planning may know about the world.

    Attributes:
        uname: of the host.
        uid, gid: the caller's effective ids.
        android: whether the host is Android (ANDROID_ROOT is set and /system/bin exists).
        timezone: IANA name, for TZ.
        paths: host paths that were asked about.
        guest: the rootfs, or None for a backend without one.
        resolver: text of the host's /etc/resolv.conf with unusable (loopback, link-local) servers left out; None if unreadable.
        hosts: text of the host's /etc/hosts; None if unreadable.
        terminal: value of the caller's TERM, for TERM in a session started from a terminal.
    """

    uname: Uname
    uid: int
    gid: int
    android: bool
    timezone: str | None
    paths: dict[PathText, HostPath]
    guest: GuestFacts | None
    resolver: str | None
    hosts: str | None
    terminal: str | None
