# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables binds.toml and environment.toml: what a row may say, and how the user's files layer over the vendor's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Generic, Literal, NamedTuple, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    StrictBool,
    StrictInt,
    ValidationError,
    model_validator,
)

from droiddeck_session.errors import SettingError
from droiddeck_session.layers import line_of, parse, validation_error
from droiddeck_session.plan.guest_paths import ancestors, mountable
from droiddeck_session.plan.model import OWN_ORIGIN, SESSION, Frozen, Kind, MountPoint
from droiddeck_session.plan.request import VARIABLE_NAME
from droiddeck_session.plan.staged import SESSION_ENTRIES
from droiddeck_session.settings import Settings
from droiddeck_session.templates import is_template, placeholders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from droiddeck_session.layers import TableFile

# What host paths may name; the first three are settings of the section [android], the rest facts.
SETTINGS_NAMES: Final = ("files", "cache", "storage")
HOST_NAMES: Final = frozenset(
    {*SETTINGS_NAMES, "root", "runtime_dir", "wayland_socket", "x_display", "gpu_device", "render_node"}
)
# What values of variables may name beside every setting.
VALUE_NAMES: Final = frozenset({"home", "user", "timezone", "terminal", "x_display", "gamescope", "mangohud_config"})

# How the vendor's files call themselves (layers.read_layers); everything else is a person's.
_VENDOR: Final = "config/"


def setting_keys() -> frozenset[str]:
    """Return every setting as `section.key`."""
    sections = {name: field.annotation for name, field in Settings.model_fields.items()}
    return frozenset(
        f"{name}.{key}"
        for name, section in sections.items()
        if isinstance(section, type) and issubclass(section, BaseModel)
        for key in section.model_fields
    )


def _template(names: frozenset[str]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not is_template(text):
            raise ValueError("has a single brace; write {name} for a name, {{ and }} for braces")
        unknown = [name for name in placeholders(text) if name not in names]
        if unknown:
            raise ValueError(f"{{{unknown[0]}}} is unknown here; known are {', '.join(sorted(names))}")
        return text

    return check


def _host_path(text: str) -> str:
    if not text.startswith(("/", "{", f"{SESSION}/")):
        raise ValueError("is not absolute")
    return _os_text(text)


def _guest_path(text: str) -> str:
    if text.startswith("{"):
        return _os_text(text)
    return mountable(text)


def _os_text(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL, which no path or value can")
    return text


def _name(text: str) -> str:
    if not VARIABLE_NAME.fullmatch(text):
        raise ValueError("is not the name of a variable")
    return text


def _known(names: frozenset[str]) -> Callable[[str], str]:
    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"{name!r} is unknown here; known are {', '.join(sorted(names))}")
        return name

    return check


_Row = TypeVar("_Row")
_Item = TypeVar("_Item")
_VALUE_KEYS: Final = VALUE_NAMES | setting_keys()
_OneOrMore = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
_HostTemplate = Annotated[str, AfterValidator(_template(HOST_NAMES)), AfterValidator(_host_path)]
_GuestTemplate = Annotated[str, AfterValidator(_template(HOST_NAMES)), AfterValidator(_guest_path)]
_ValueTemplate = Annotated[str, AfterValidator(_template(_VALUE_KEYS)), AfterValidator(_os_text)]
_GuestPath = Annotated[str, AfterValidator(mountable)]
_HostTemplates = Annotated[tuple[_HostTemplate, ...], _OneOrMore]


class HostCondition(Frozen):
    """When a bind's row applies: all that is said must hold.

    Attributes:
        os: the host's.
        kinds: of the session.
        set: names that stand for something here.
        exists, directory, readable: host paths that are there, are folders, can be read.
        unreadable: host paths that are there and cannot be read.
        absent: host paths that are not there.
    """

    os: Literal["linux", "android"] | None = None
    kinds: Annotated[tuple[Kind, ...], _OneOrMore] = ()
    set: Annotated[tuple[Annotated[str, AfterValidator(_known(HOST_NAMES))], ...], _OneOrMore] = ()
    exists: _HostTemplates = ()
    directory: _HostTemplates = ()
    readable: _HostTemplates = ()
    unreadable: _HostTemplates = ()
    absent: _HostTemplates = ()

    def paths(self) -> Iterable[str]:
        """Return the host paths that must be looked at."""
        return (*self.exists, *self.directory, *self.readable, *self.unreadable, *self.absent)


class ValueCondition(Frozen):
    """When a variable's row applies: all that is said must hold.

    Attributes:
        os: the host's.
        kinds: of the session.
        set: names that stand for something here.
        setting: settings that have this value.
        bound: guest paths that are bound.
    """

    os: Literal["linux", "android"] | None = None
    kinds: Annotated[tuple[Kind, ...], _OneOrMore] = ()
    set: Annotated[tuple[Annotated[str, AfterValidator(_known(_VALUE_KEYS))], ...], _OneOrMore] = ()
    setting: dict[Annotated[str, AfterValidator(_known(setting_keys()))], StrictBool | StrictInt | str] = Field(
        default_factory=dict
    )
    bound: Annotated[tuple[_GuestPath, ...], _OneOrMore] = ()


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

    host: _HostTemplate
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
        raise validation_error(file, error, model) from None


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
