# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings: one table of models that drives files, environment variables, help and JSON Schema.

Five layers, later over earlier: vendor, system, user, environment, flags. Every value keeps the name of the layer it is from.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GuestSettings(_Section):
    """[guest]: which rootfs, and who one is in it."""

    name: str = Field("demo", description="guest to start: a name of `guest list`, or the absolute path of a rootfs")
    hostname: str | None = Field(None, description="host name inside the guest; unset: DroidDeck")
    identity: Literal["caller", "root"] = Field("caller", description="ids inside: the caller's, or emulated root")


class BackendSettings(_Section):
    """[backend]: what translates paths."""

    name: str = Field("auto", description="backend to use; auto takes the first that confines")
    proot: str | None = Field(None, description="proot program; unset: proot on PATH")
    bwrap: str | None = Field(None, description="bwrap program; unset: bwrap on PATH")


class SessionSettings(_Section):
    """[session]: how sessions end and what they leave."""

    grace: Annotated[float, Field(ge=0, le=600)] = Field(5.0, description="seconds from TERM to KILL")
    linger: Annotated[float, Field(ge=0, le=600)] = Field(5.0, description="seconds that leftovers may outlive the main program")
    keep: Annotated[int, Field(ge=1, le=10000)] = Field(30, description="finished session folders that are kept")


class DisplaySettings(_Section):
    """[display]: the output that gamescope draws to."""

    width: Annotated[int, Field(ge=1, le=16384)] = Field(1280, description="width in pixels")
    height: Annotated[int, Field(ge=1, le=16384)] = Field(720, description="height in pixels")
    refresh: Annotated[int, Field(ge=0, le=1000)] = Field(60, description="refresh rate in Hz; 0: unknown")
    fps: Annotated[int, Field(ge=0, le=1000)] = Field(0, description="frame cap; 0: none")
    hdr: bool = Field(default=False, description="high dynamic range")
    stretch_16x9: bool = Field(default=False, description="render 16:9 and stretch it over the output")
    realtime: bool = Field(default=False, description="real-time priority for gamescope")


class SteamSettings(_Section):
    """[steam]: the client."""

    deck: bool = Field(default=True, description="present the machine as a Steam Deck")
    mangoapp: bool = Field(default=True, description="performance overlay")
    ui: Literal["bigpicture", "desktop"] = Field("bigpicture", description="the client's user interface")
    channel: str = Field("steamdeck_publicbeta", description="client beta channel")
    language: str = Field("english", description="client language")
    xalia: bool = Field(default=False, description="Proton's Xalia helper")


class GraphicsSettings(_Section):
    """[graphics]: Mesa's switches."""

    tu_sysmem: bool = Field(default=True, description="TU_DEBUG=sysmem for Turnip")
    zink_lazy: bool = Field(default=True, description="ZINK_DESCRIPTORS=lazy, ZINK_DEBUG=compact")
    glthread: bool = Field(default=True, description="mesa_glthread=true")
    no_error: bool = Field(default=True, description="MESA_NO_ERROR=1")


class SyncSettings(_Section):
    """[sync]: how Wine synchronises."""

    backend: Literal["ntsync", "fsync", "esync", "wineserver"] = Field("ntsync", description="first choice")


class FastPathSettings(_Section):
    """[fast_path]: path calls answered inside the process."""

    enabled: bool = Field(default=True, description="use it where the backend offers it")


class AndroidSettings(_Section):
    """[android]: folders of the app, which it passes in the environment."""

    files: str | None = Field(None, description="the app's files folder")
    cache: str | None = Field(None, description="the app's cache folder")
    storage: str | None = Field(None, description="external storage")


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
    environment: dict[str, str] = Field(default_factory=dict, description="variables for the guest")
