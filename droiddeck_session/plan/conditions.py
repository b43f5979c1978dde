# SPDX-License-Identifier: GPL-3.0-or-later
"""When a row of the tables applies: what a condition may ask, and whether it holds here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StrictBool, StrictInt

from droiddeck_session.facts import HostPath
from droiddeck_session.plan.guest_paths import mountable
from droiddeck_session.plan.model import SESSION, Frozen, Kind
from droiddeck_session.settings import Settings
from droiddeck_session.templates import expand, is_template, placeholders

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from droiddeck_session.facts import Facts

# What host paths may name; the first three are settings of the section [android], the rest facts.
SETTINGS_NAMES: Final = ("files", "cache", "storage")
HOST_NAMES: Final = frozenset(
    {*SETTINGS_NAMES, "root", "runtime_dir", "wayland_socket", "pulse_socket"}
    | {"x_display", "x_authority", "gpu_device", "render_node"}
)
# What values of variables may name beside every setting.
VALUE_NAMES: Final = frozenset(
    {"home", "user", "timezone", "terminal", "x_display", "client", "gamescope", "mangohud_config"}
)

MISSING: Final = HostPath(kind="missing", resolved="", readable=False)
THERE: Final = frozenset({"directory", "file", "other"})


def setting_keys() -> frozenset[str]:
    """Return every setting as `section.key`."""
    sections = {name: field.annotation for name, field in Settings.model_fields.items()}
    return frozenset(
        f"{name}.{key}"
        for name, section in sections.items()
        if isinstance(section, type) and issubclass(section, BaseModel)
        for key in section.model_fields
    )


def template(names: frozenset[str]) -> Callable[[str], str]:
    """Return the check that a text is a template of these names."""

    def check(text: str) -> str:
        if not is_template(text):
            raise ValueError("has a single brace; write {name} for a name, {{ and }} for braces")
        unknown = [name for name in placeholders(text) if name not in names]
        if unknown:
            raise ValueError(f"{{{unknown[0]}}} is unknown here; known are {', '.join(sorted(names))}")
        return text

    return check


def os_text(text: str) -> str:
    """Check that the kernel can take a text."""
    if "\0" in text:
        raise ValueError("holds a NUL, which no path or value can")
    return text


def _host_path(text: str) -> str:
    if not text.startswith(("/", "{", f"{SESSION}/")):
        raise ValueError("is not absolute")
    return os_text(text)


def _known(names: frozenset[str]) -> Callable[[str], str]:
    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"{name!r} is unknown here; known are {', '.join(sorted(names))}")
        return name

    return check


VALUE_KEYS: Final = VALUE_NAMES | setting_keys()
HostTemplate = Annotated[str, AfterValidator(template(HOST_NAMES)), AfterValidator(_host_path)]
_OneOrMore = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
_HostTemplates = Annotated[tuple[HostTemplate, ...], _OneOrMore]
_GuestPaths = Annotated[tuple[Annotated[str, AfterValidator(mountable)], ...], _OneOrMore]

_TESTS: Final[Mapping[str, Callable[[HostPath], bool]]] = {
    "exists": lambda path: path.kind in THERE,
    "directory": lambda path: path.kind == "directory",
    "readable": lambda path: path.readable,
    "unreadable": lambda path: path.kind != "missing" and not path.readable,
    "absent": lambda path: path.kind == "missing",
}


class _Condition(Frozen):
    """What rows of both tables may ask; all that is said must hold.

    Attributes:
        os: the host's.
        kinds: of the session.
        exists, directory, readable: host paths that are there, are folders, can be read.
        unreadable: host paths that are there and cannot be read.
        some_unreadable: host paths at least one of which is there and cannot be read.
        withheld: host paths that cannot be read; on Android also those that are not there, for that is how some of its
            kernels say no.
        absent: host paths that are not there, or that a name stands for nothing in.
    """

    os: Literal["linux", "android"] | None = None
    kinds: Annotated[tuple[Kind, ...], _OneOrMore] = ()
    exists: _HostTemplates = ()
    directory: _HostTemplates = ()
    readable: _HostTemplates = ()
    unreadable: _HostTemplates = ()
    some_unreadable: _HostTemplates = ()
    withheld: _HostTemplates = ()
    absent: _HostTemplates = ()

    def paths(self) -> tuple[str, ...]:
        """Return the host paths that must be looked at."""
        return (*self.some_unreadable, *self.withheld, *(path for test in _TESTS for path in getattr(self, test)))

    def _holds(self, facts: Facts, host_names: Mapping[str, str], kind: Kind) -> bool:
        if self.os not in {None, "android" if facts.android else "linux"} or (self.kinds and kind not in self.kinds):
            return False

        def at(path: str) -> HostPath:
            expanded = expand(path, host_names)
            return MISSING if expanded is None else facts.paths.get(expanded, MISSING)

        unreadable = _TESTS["unreadable"]
        withheld = (lambda path: not path.readable) if facts.android else unreadable
        return (
            all(passes(at(path)) for test, passes in _TESTS.items() for path in getattr(self, test))
            and all(withheld(at(path)) for path in self.withheld)
            and (not self.some_unreadable or any(unreadable(at(path)) for path in self.some_unreadable))
        )


class HostCondition(_Condition):
    """When a bind's row applies.

    Attributes:
        set: names that stand for something here.
    """

    set: Annotated[tuple[Annotated[str, AfterValidator(_known(HOST_NAMES))], ...], _OneOrMore] = ()

    def holds(self, facts: Facts, host_names: Mapping[str, str], kind: Kind) -> bool:
        """Whether all that the condition says is so.

        Args:
            facts: the machine.
            host_names: what names of host paths stand for.
            kind: of the session.
        """
        return all(name in host_names for name in self.set) and self._holds(facts, host_names, kind)


class ValueCondition(_Condition):
    """When a variable's row applies.

    Attributes:
        set: names that stand for something here.
        setting: settings that have this value.
        bound: guest paths that are bound.
        in_rootfs: guest paths that the rootfs has a file at.
    """

    set: Annotated[tuple[Annotated[str, AfterValidator(_known(VALUE_KEYS))], ...], _OneOrMore] = ()
    setting: dict[Annotated[str, AfterValidator(_known(setting_keys()))], StrictBool | StrictInt | str] = Field(
        default_factory=dict
    )
    bound: _GuestPaths = ()
    in_rootfs: _GuestPaths = ()

    def holds(
        self,
        facts: Facts,
        host_names: Mapping[str, str],
        kind: Kind,
        *,
        settings: Mapping[str, object],
        names: Collection[str],
        bound: Collection[str],
    ) -> bool:
        """Whether all that the condition says is so.

        Args:
            facts: the machine.
            host_names: what names of host paths stand for.
            kind: of the session.
            settings: their values by key.
            names: the names that stand for something in values.
            bound: guest paths that are bound.
        """
        known = facts.guest.paths if facts.guest is not None else {}
        return (
            self._holds(facts, host_names, kind)
            and all(name in names for name in self.set)
            and all(settings.get(key) == value for key, value in self.setting.items())
            and all(path in bound for path in self.bound)
            and all(path in known and known[path].kind == "file" for path in self.in_rootfs)
        )
