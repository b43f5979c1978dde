# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings: one table of models that drives files, environment variables, options, help and JSON Schema.

Five layers, later over earlier: vendor, system, user, environment, flags. Every value keeps the name of the layer it is
from. A key is a field here and a line of `config/config.toml`; nothing else lists it.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from droiddeck_session.layers import places
from droiddeck_session.paths import SYSTEM_CONFIG, Directories
from droiddeck_session.setting_keys import Flag, keys_of
from droiddeck_session.setting_layers import Layer, merge, nested, of_environment, of_flags, of_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from droiddeck_session.setting_keys import Key

FILE_NAME: Final = "config.toml"
# The origin of a value that no layer set; the vendor's file sets them all, so only a value made by hand has it.
NO_LAYER: Final = "default"

# What only the session itself sets: another value would make it lose its own processes or trust a wrong page.
SESSION_VARIABLE: Final = "DROIDDECK_SESSION"
FAST_PATH_VARIABLES: Final = ("PROOT_FP_ROOT", "PROOT_FP_BINDS", "PROOT_FP_KEY")
RESERVED_VARIABLES: Final = frozenset({SESSION_VARIABLE, *FAST_PATH_VARIABLES})

GUEST_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# RFC 1123 label: what both the kernel's nodename and programs that resolve it accept.
_HOST_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")


def _any_text(value: object) -> str:
    # Not pydantic's own str: a path may hold bytes that are not UTF-8 (PEP 383), which that refuses.
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "Input should be a text")
    if "\0" in value:
        raise ValueError("holds a NUL, which no path, argument or variable can")
    return value


def _some_text(value: object) -> str:
    if value == "":
        raise ValueError("must not be empty")
    return _any_text(value)


def _guest(value: object) -> str:
    name = _some_text(value)
    if not name.startswith("/") and not GUEST_NAME.fullmatch(name):
        raise ValueError(
            "must be a guest's name (1 to 64 of a-z, 0-9, '.', '_', '-', letter or digit first) or an absolute path"
        )
    return name


def _text_or_unset(value: object) -> str | None:
    return None if value is None else _any_text(value) or None


def _path_or_unset(value: object) -> str | None:
    path = _text_or_unset(value)
    if path is not None and not path.startswith("/"):
        raise ValueError("must be an absolute path")
    return path


def _command_or_unset(value: object) -> str | None:
    command = _text_or_unset(value)
    if command is not None:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ValueError(f"is no command line: {error}") from None
        if not words:
            raise ValueError("names no program")
    return command


def _host_or_unset(value: object) -> str | None:
    name = _text_or_unset(value)
    if name is not None and not _HOST_LABEL.fullmatch(name):
        raise ValueError("must be 1 to 63 letters, digits or hyphens, not led or ended by a hyphen")
    return name


def _variable_name(name: str) -> str:
    if not _VARIABLE_NAME.fullmatch(name):
        raise ValueError("is no name of a variable: letters, digits and _, not led by a digit")
    if name in RESERVED_VARIABLES:
        raise ValueError("is set by the session itself")
    return name


# TOML has no null: an empty text leaves such a setting unset.
_TEXT: Final = WithJsonSchema({"type": "string"})
Value = Annotated[str, PlainValidator(_any_text), _TEXT]
Text = Annotated[str, PlainValidator(_some_text), WithJsonSchema({"type": "string", "minLength": 1})]
GuestName = Annotated[
    str, PlainValidator(_guest), WithJsonSchema({"type": "string", "pattern": f"^(/.*|{GUEST_NAME.pattern})$"})
]
OptionalText = Annotated[str | None, PlainValidator(_text_or_unset), _TEXT]
OptionalPath = Annotated[
    str | None, PlainValidator(_path_or_unset), WithJsonSchema({"type": "string", "pattern": "^(/|$)"})
]
# Words as a shell would split them; no shell runs.
OptionalCommand = Annotated[str | None, PlainValidator(_command_or_unset), _TEXT]
OptionalHost = Annotated[
    str | None,
    PlainValidator(_host_or_unset),
    WithJsonSchema({"type": "string", "pattern": f"^({_HOST_LABEL.pattern})?$"}),
]
VariableName = Annotated[
    str,
    AfterValidator(_variable_name),
    WithJsonSchema({"type": "string", "pattern": f"^{_VARIABLE_NAME.pattern}$"}),
]
Pixels = Annotated[int, Field(ge=1, le=16384)]
Rate = Annotated[int, Field(ge=0, le=1000)]
Seconds = Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GuestSettings(_Section):
    """[guest]: which rootfs, and who one is in it."""

    name: Annotated[GuestName, Flag("--guest")] = Field(
        "demo", description="guest to start: a name of `guest list`, or the absolute path of a rootfs"
    )
    hostname: Annotated[OptionalHost, Flag("--hostname")] = Field(
        None, description="host name inside the guest; unset: DroidDeck"
    )
    identity: Annotated[Literal["caller", "root"], Flag("--identity")] = Field(
        "caller", description="ids inside: the caller's, or emulated root"
    )


class BackendSettings(_Section):
    """[backend]: what translates paths."""

    name: Annotated[Text, Flag("--backend")] = Field(
        "auto", description="backend to use; auto takes the first that confines"
    )
    proot: OptionalText = Field(None, description="proot program; unset: proot on PATH")
    bwrap: OptionalText = Field(None, description="bwrap program; unset: bwrap on PATH")


class SessionSettings(_Section):
    """[session]: how sessions end and what they leave."""

    grace: Annotated[Seconds, Flag("--grace")] = Field(5.0, description="seconds from TERM to KILL")
    linger: Annotated[Seconds, Flag("--linger")] = Field(
        5.0, description="seconds that leftovers may outlive the main program"
    )
    wait_for: Literal["main", "tree"] = Field(
        "main", description="what ends the session: the main program's end, or that of the last process"
    )
    client_limit: Seconds = Field(10.0, description="seconds that `stop` leaves to the Steam client to end by itself")
    before: OptionalCommand = Field(None, description="command on the host before the session; it must succeed")
    after: OptionalCommand = Field(None, description="command on the host after the session, however that ended")
    ready_file: OptionalPath = Field(
        None, description="host path whose file, once there, says that the session is ready"
    )
    ready_socket: OptionalPath = Field(None, description="host path of a socket at which READY=1 says so (sd_notify)")
    ready_command: OptionalCommand = Field(None, description="command on the host whose success says so; tried again")
    ready_limit: Seconds = Field(0.0, description="seconds in which the session must be ready; 0: no limit")
    output_limit: Annotated[int, Field(ge=0, le=1048576)] = Field(
        256, description="MiB of a session's output that are kept where it has no terminal"
    )
    keep: Annotated[int, Field(ge=1, le=10000)] = Field(30, description="finished session folders that are kept")


class DisplaySettings(_Section):
    """[display]: the output that gamescope draws to."""

    width: Annotated[Pixels, Flag("--width")] = Field(1280, description="width in pixels")
    height: Annotated[Pixels, Flag("--height")] = Field(720, description="height in pixels")
    refresh: Annotated[Rate, Flag("--refresh")] = Field(60, description="refresh rate in Hz; 0: unknown")
    fps: Annotated[Rate, Flag("--fps")] = Field(0, description="frame cap; 0: none")
    hdr: Annotated[bool, Flag("--hdr")] = Field(default=False, description="high dynamic range")
    stretch_16x9: Annotated[bool, Flag("--stretch-16x9")] = Field(
        default=False, description="render 16:9 and stretch it over the output"
    )
    realtime: Annotated[bool, Flag("--realtime")] = Field(default=False, description="real-time priority for gamescope")


class SteamSettings(_Section):
    """[steam]: the client."""

    deck: Annotated[bool, Flag("--deck")] = Field(default=True, description="present the machine as a Steam Deck")
    mangoapp: Annotated[bool, Flag("--mangoapp")] = Field(default=True, description="performance overlay")
    ui: Annotated[Literal["bigpicture", "desktop"], Flag("--ui")] = Field(
        "bigpicture", description="the client's user interface"
    )
    channel: Annotated[Text, Flag("--channel")] = Field("steamdeck_publicbeta", description="client beta channel")
    language: Annotated[Text, Flag("--language")] = Field("english", description="client language")
    xalia: Annotated[bool, Flag("--xalia")] = Field(default=False, description="Proton's Xalia helper")


class GraphicsSettings(_Section):
    """[graphics]: Mesa's switches."""

    tu_sysmem: bool = Field(default=True, description="TU_DEBUG=sysmem for Turnip")
    zink_lazy: bool = Field(default=True, description="ZINK_DESCRIPTORS=lazy, ZINK_DEBUG=compact")
    glthread: bool = Field(default=True, description="mesa_glthread=true")
    no_error: bool = Field(default=True, description="MESA_NO_ERROR=1")


class SyncSettings(_Section):
    """[sync]: how Wine synchronises."""

    backend: Annotated[Literal["ntsync", "fsync", "esync", "wineserver"], Flag("--sync")] = Field(
        "ntsync", description="first choice of how Wine synchronises"
    )


class FastPathSettings(_Section):
    """[fast_path]: path calls answered inside the process."""

    enabled: Annotated[bool, Flag("--fast-path")] = Field(
        default=True, description="use the fast path where the backend offers it"
    )


class AndroidSettings(_Section):
    """[android]: folders of the app, which it passes in the environment."""

    files: OptionalPath = Field(None, description="the app's files folder")
    cache: OptionalPath = Field(None, description="the app's cache folder")
    storage: OptionalPath = Field(None, description="external storage")


class Settings(_Section):
    """All settings. `environment` is the user's own variables for the guest, by name."""

    guest: GuestSettings = GuestSettings()
    backend: BackendSettings = BackendSettings()
    session: SessionSettings = SessionSettings()
    display: DisplaySettings = DisplaySettings()
    steam: SteamSettings = SteamSettings()
    graphics: GraphicsSettings = GraphicsSettings()
    sync: SyncSettings = SyncSettings()
    fast_path: FastPathSettings = FastPathSettings()
    android: AndroidSettings = AndroidSettings()
    environment: dict[VariableName, Value] = Field(
        default_factory=dict, repr=False, description="variables for the guest"
    )


KEYS: Final[Mapping[str, Key]] = keys_of(Settings)


@dataclass(frozen=True)
class LoadedSettings:
    """The settings of all layers together, and who set each of them.

    Attributes:
        settings: the values.
        origins: by dotted key, `environment.NAME` among them: a file's path, `environment DROIDDECK_...`, `flag --...`.
    """

    settings: Settings
    origins: Mapping[str, str] = field(default_factory=dict)

    def origin(self, key: str) -> str:
        """Return who set a key, as `guest.name`; `default` where no layer did."""
        return self.origins.get(key, NO_LAYER)


def layers_of(
    *, directories: Directories, environ: Mapping[str, str], flags: Mapping[str, object], system: Path = SYSTEM_CONFIG
) -> tuple[Layer, ...]:
    """Return all layers, the weakest first; what is wrong in one is told by its `faults`."""
    return (
        *(of_path(path, origin, Settings) for path, origin in places(FILE_NAME, directories, system=system)),
        of_environment(environ, Settings),
        of_flags(flags, Settings),
    )


def load(
    *, directories: Directories, environ: Mapping[str, str], flags: Mapping[str, object], system: Path = SYSTEM_CONFIG
) -> LoadedSettings:
    """Return the settings for this user, environment and command line.

    Args:
        directories: where the user's configuration is.
        environ: the caller's environment; `DROIDDECK_<SECTION>_<KEY>` is read.
        flags: what options gave, by dotted key.
        system: the system's configuration folder.

    Raises:
        SettingError: the first fault of the weakest layer that has one; names file and line, variable or option.
    """
    layers = layers_of(directories=directories, environ=environ, flags=flags, system=system)
    for fault in (fault for layer in layers for fault in layer.faults):
        raise fault
    return combined(layers)


def combined(layers: tuple[Layer, ...]) -> LoadedSettings:
    """Return what layers without faults say together."""
    values = merge(*(layer.values for layer in layers))
    return LoadedSettings(
        settings=Settings.model_validate(nested(values), strict=True),
        origins={key: sourced.origin for key, sourced in values.items()},
    )
