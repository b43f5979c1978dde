# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables binds.toml and environment.toml: what a row may say, and how the user's files layer over the vendor's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Generic, Literal, NamedTuple, Self, TypeVar

from pydantic import (
    AfterValidator,
    StrictBool,
    ValidationError,
    model_validator,
)

from droiddeck_session.errors import SettingError
from droiddeck_session.layers import line_of, parse, validation_errors
from droiddeck_session.plan.conditions import (
    HOST_NAMES,
    VALUE_KEYS,
    HostCondition,
    HostTemplate,
    ValueCondition,
    os_text,
    template,
)
from droiddeck_session.plan.guest_paths import ancestors, mountable
from droiddeck_session.plan.model import OWN_ORIGIN, SESSION, Frozen, MountPoint
from droiddeck_session.plan.request import VARIABLE_NAME
from droiddeck_session.plan.staged import SESSION_ENTRIES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from droiddeck_session.layers import TableFile

# How the vendor's files call themselves (layers.read_layers); everything else is a person's.
_VENDOR: Final = "config/"
_HINT: Final = "see docs/binds-and-environment.md for what a row may say"


def _guest_path(text: str) -> str:
    if text.startswith("{"):
        return os_text(text)
    return mountable(text)


def _name(text: str) -> str:
    if not VARIABLE_NAME.fullmatch(text):
        raise ValueError("is not the name of a variable")
    return text


_Row = TypeVar("_Row")
_Item = TypeVar("_Item")
_GuestTemplate = Annotated[str, AfterValidator(template(HOST_NAMES)), AfterValidator(_guest_path)]
_ValueTemplate = Annotated[str, AfterValidator(template(VALUE_KEYS)), AfterValidator(os_text)]


class BindRow(Frozen):
    """One `[[bind]]`: of the rows that apply, the last for one guest path counts.

    Attributes:
        host: template of the host path, or a path below `@session@`.
        guest: template of the guest path; without it, the host's.
        reason: why, for `plan` to show.
        when: the condition; without it, always.
        required: without its source there is no session; else it is left out and said so.
        kind: what the source must be.
        read_only: the guest must not write through it.
    """

    host: HostTemplate
    guest: _GuestTemplate | None = None
    reason: str
    when: HostCondition = HostCondition()
    required: StrictBool = False
    kind: Literal["file", "directory"] | None = None
    read_only: StrictBool = False

    @property
    def at(self) -> str:
        """Template of the guest path."""
        return self.host if self.guest is None else self.guest

    @model_validator(mode="after")
    def _checked(self) -> Self:
        if self.host.startswith(SESSION) and self.host.removeprefix(f"{SESSION}/") not in SESSION_ENTRIES:
            raise ValueError(f"a session stages no {self.host}; it stages {', '.join(sorted(SESSION_ENTRIES))}")
        if self.host.startswith(SESSION) and self.guest is None:
            raise ValueError("guest is missing")
        return self


class VariableRow(Frozen):
    """One `[[variable]]`: of the rows that apply, the last for one name counts."""

    name: Annotated[str, AfterValidator(_name)]
    value: _ValueTemplate
    reason: str
    when: ValueCondition = ValueCondition()


class _BindFile(Frozen):
    bind: tuple[BindRow, ...] = ()
    omit: tuple[_GuestTemplate, ...] = ()


class _EnvironmentFile(Frozen):
    variable: tuple[VariableRow, ...] = ()
    omit: tuple[str, ...] = ()


class Sourced(NamedTuple, Generic[_Row]):
    """A row and the file that it is from."""

    origin: str
    row: _Row


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Both tables, all layers over each other, each row with its file."""

    binds: tuple[Sourced[BindRow], ...]
    variables: tuple[Sourced[VariableRow], ...]

    def mount_points(self) -> tuple[MountPoint, ...]:
        """Return what `guest create` and `import` make, so that sessions find it on a rootfs they cannot write.

        That is every guest path that is the same on each machine and below no other row's. Rows of Android alone are
        left out: what runs there needs no mount points.
        """
        rows = [sourced.row for sourced in self.binds]
        fixed = {row.at: row for row in rows if row.kind and row.when.os != "android" and "{" not in row.at}
        guests = {row.at for row in rows}
        return tuple(
            MountPoint(guest=guest, directory=row.kind == "directory")
            for guest, row in fixed.items()
            if guests.isdisjoint(ancestors(guest))
        )


def parse_tables(binds: Sequence[TableFile], environment: Sequence[TableFile]) -> Tables:
    """Return the tables that these files make, each over the ones before it.

    Args:
        binds: the files binds.toml, the vendor's first.
        environment: the files environment.toml, the vendor's first.

    Raises:
        SettingError: a file is malformed; names file, line and key.
    """
    bind_rows: list[Sourced[BindRow]] = []
    for file in binds:
        bind_table = _validated(file, _BindFile)
        _omit(file, bind_table.omit, bind_rows, lambda row: row.at)
        bind_rows += [Sourced(origin_of(file), row) for row in bind_table.bind]
    variable_rows: list[Sourced[VariableRow]] = []
    for file in environment:
        variable_table = _validated(file, _EnvironmentFile)
        _omit(file, variable_table.omit, variable_rows, lambda row: row.name)
        variable_rows += [Sourced(origin_of(file), row) for row in variable_table.variable]
    return Tables(binds=tuple(bind_rows), variables=tuple(variable_rows))


def origin_of(file: TableFile) -> str:
    """Return how a plan names this file: what is not a person's is said to be the vendor's."""
    return f"{OWN_ORIGIN} {file.origin}" if file.origin.startswith(_VENDOR) else file.origin


_File = TypeVar("_File", bound=Frozen)


def _validated(file: TableFile, model: type[_File]) -> _File:
    try:
        return model.model_validate(parse(file))
    except ValidationError as error:
        raise validation_errors(file, error, model, hint=_HINT)[0] from None


def _omit(
    file: TableFile, omitted: Sequence[str], rows: list[Sourced[_Item]], name: Callable[[_Item], str]
) -> None:  # fmt: skip
    """Take rows of the layers below out; one that none of them has is a mistake."""
    for index, wanted in enumerate(omitted):
        kept = [sourced for sourced in rows if name(sourced.row) != wanted]
        if len(kept) == len(rows):
            raise SettingError(
                code="BAD_VALUE",
                message=f"{file.origin}:{line_of(file, ('omit', index))}: omit: no row before this file has {wanted!r}",
                hint="see `droiddeck-session plan run -- true` for the rows that there are",
            )
        rows[:] = kept
