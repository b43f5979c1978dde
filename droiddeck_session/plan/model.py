# SPDX-License-Identifier: GPL-3.0-or-later
r"""The plan: everything a session will do, as one frozen value that is printed, executed, logged and compared.

A plan has two forms. The symbolic one names its session folder `@session@`: it is what `plan` prints and golden tests
compare. `fast_path.bound` gives the concrete one that is staged, run and logged.

Paths and values are byte strings to the kernel. They are `str` here with surrogateescape (PEP 383), so a byte that is
not UTF-8 is one lone surrogate; JSON writes it as `\udc80` to `\udcff` and reads it back.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema

SCHEMA: Final = 1
SESSION: Final = "@session@"
URL_OPTION: Final = "--url"
NOT_RECORDED: Final = "(not recorded)"
# How the origin of what the project's own tables and code put into a plan begins; the rest is from the user.
OWN_ORIGIN: Final = "vendor"


def _os_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")  # noqa: TRY004 - pydantic turns ValueError into its own error
    if "\0" in value:
        raise ValueError("holds a NUL, which no path, argument or variable can")
    return value


# pydantic's own str refuses lone surrogates; the kernel does not.
OsText = Annotated[str, PlainValidator(_os_text), WithJsonSchema({"type": "string"})]

Kind = Literal["steam", "desktop", "run"]


class Frozen(BaseModel):
    """What all parts of a plan have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Bind(Frozen):
    """One host path shown at one guest path; of two with the same guest path the last counts.

    Attributes:
        host: absolute host path with links resolved, or a path below `@session@`.
        guest: absolute, normalised guest path with the guest's own links resolved.
        reason: why it is there, for `plan` to show.
        origin: which table, file or flag asked for it.
        required: whether the session cannot start without it.
        read_only: whether the guest must not write through it.
        directory: whether the host path is a folder.
    """

    host: OsText
    guest: OsText
    reason: str
    origin: str
    required: bool = False
    read_only: bool = False
    directory: bool


class DroppedBind(Frozen):
    """A bind of the tables that this session goes without, and why."""

    host: OsText
    guest: OsText
    origin: str
    why: str


class Variable(Frozen):
    """One variable of the guest's environment."""

    name: OsText
    value: OsText
    origin: str
    reason: str = ""


class StagedFile(Frozen):
    """A file or folder that is made in the session folder before the start.

    Attributes:
        path: below the session folder, without a leading slash.
        content: the text, or None for an empty folder.
        program: instead of a text, the file of `guest/programs/` that is copied.
        mode: permission bits.
    """

    path: OsText
    content: OsText | None = None
    program: str | None = None
    mode: int = 0o644

    @property
    def is_folder(self) -> bool:
        """Whether an empty folder is made."""
        return self.content is None and self.program is None


class MountPoint(Frozen):
    """An empty file or folder that must exist in the rootfs for a backend that mounts with the kernel."""

    guest: OsText
    directory: bool


class Identity(Frozen):
    """The user and group ids that the guest's processes have, and whether they differ from the caller's."""

    uid: int
    gid: int
    emulated: bool = False


class FastPath(Frozen):
    """The wiring of the fast path (spec: fastpath, section 2); `why_off` is empty when it is on.

    `key` is computed when the plan is bound, because the binds that it covers name the session folder.
    """

    enabled: bool
    why_off: str = ""
    key: str | None = None


class GuestReference(Frozen):
    """The rootfs."""

    name: str
    root: OsText
    read_only: bool = False


class Plan(Frozen):
    """What a session is: the guest, the backend's name, binds, environment, command line and files to stage.

    Attributes:
        binds: parents before what lies below them, one for each guest path: the order in which the kernel mounts them.
        kernel_release: the value of `--kernel-release` (seven backslash-led fields), or None to leave the kernel's.
        nodename: the host name that the guest sees, or None for the host's.
        cwd: guest path of the working directory.
        argv: what runs inside, `env -i NAME=VALUE... PROGRAM ARGS` not yet prepended; see `command_line`.
        stand_ins: names of programs that the guest lacks and an open stand-in replaces.
    """

    schema_: Literal[1] = Field(default=SCHEMA, alias="schema")
    kind: Kind
    label: OsText
    guest: GuestReference
    backend: str
    identity: Identity
    kernel_release: str | None
    nodename: str | None
    cwd: OsText
    binds: tuple[Bind, ...]
    dropped: tuple[DroppedBind, ...] = ()
    environment: tuple[Variable, ...]
    argv: tuple[OsText, ...]
    staged: tuple[StagedFile, ...] = ()
    mount_points: tuple[MountPoint, ...] = ()
    fast_path: FastPath
    stand_ins: tuple[str, ...] = ()
    session: OsText = SESSION

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)

    def command_line(self) -> tuple[str, ...]:
        """Return the guest's argv, led by env(1) so that exactly the plan's variables reach the program."""
        return ("/usr/bin/env", "-i", *(f"{entry.name}={entry.value}" for entry in self.environment), *self.argv)

    def bind_specs(self) -> tuple[str, ...]:
        """Return the binds as `HOST:GUEST`, or one path where both are the same, in the plan's order.

        This one list is what a proot-style tracer gets, what the fast-path key covers and what PROOT_FP_BINDS holds.
        """
        return tuple(bind.host if bind.host == bind.guest else f"{bind.host}:{bind.guest}" for bind in self.binds)

    def without_values(self) -> Plan:
        """Return the plan as it may be kept in a log: no value, URL or program's argument that the user gave."""
        environment = tuple(
            entry if entry.origin.startswith(OWN_ORIGIN) else entry.model_copy(update={"value": NOT_RECORDED})
            for entry in self.environment
        )
        # The words of the other kinds are ours and the settings', but for a URL, which may hold a game's arguments.
        shown = tuple(
            NOT_RECORDED if number and (self.kind == "run" or self.argv[number - 1] == URL_OPTION) else word
            for number, word in enumerate(self.argv)
        )
        return self.model_copy(update={"environment": environment, "argv": shown})

    def to_json(self) -> str:
        """Return the plan as one line of JSON; `from_json` reads it back."""
        return json.dumps(self.model_dump(mode="python", by_alias=True))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote.

        Raises:
            pydantic.ValidationError: the text is no plan of this schema.
        """
        document: dict[str, Any] = json.loads(text)
        return cls.model_validate(document)
