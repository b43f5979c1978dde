# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs in a session: [gamescope --] droiddeck-inner -- client, or the program of `run` by itself.

The client is the guest's; where it has none, an open stand-in is staged and takes its place (spec: launcher, 3.4, 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from droiddeck_session.errors import PlanError
from droiddeck_session.plan.model import URL_OPTION, StagedFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from droiddeck_session.facts import GuestFacts
    from droiddeck_session.plan.request import Request
    from droiddeck_session.settings import DisplaySettings, Settings

PROGRAMS: Final = "/opt/droiddeck"
PYTHON: Final = "/usr/bin/python3"
ENV: Final = "/usr/bin/env"
RESTART_STATUS: Final = 42
RESTARTS: Final = 3

# Where each is looked for, the first that can be run counts. Debian has games in /usr/games.
_GAMESCOPE: Final = ("/usr/local/bin/gamescope", "/usr/bin/gamescope", "/usr/games/gamescope")
_MANGOAPP: Final = ("/usr/local/bin/mangoapp", "/usr/bin/mangoapp")
_CLIENTS_IN_HOME: Final = (".local/share/Steam/steamrtarm64/steam", ".steam/debian-installation/steam.sh")
_CLIENTS: Final = ("/usr/local/bin/steam", "/usr/bin/steam", "/usr/games/steam")
_DESKTOPS: Final = ("/usr/local/bin/droiddeck-desktop", "/usr/bin/startlxqt", "/usr/bin/startxfce4")

# Path below programs/, file of guest/programs/.
_INNER: Final = (("droiddeck-inner", "droiddeck_inner.py"), ("droiddeck-game-env", "game_env.py"))
_STAND_INS: Final = {
    "steam": ("steam", "web-helper", "reaper", "proton", "game"),
    "desktop": ("desktop",),
}
_MANGOHUD_CONFIG: Final = "mangohud.conf"
# Inside gamescope programs use its Xwayland. Gamescope itself must not have these: SDL would draw it through X.
_NESTED: Final = {"GDK_BACKEND": "x11", "QT_QPA_PLATFORM": "xcb", "SDL_VIDEODRIVER": "x11"}

Display = Literal["wayland", "sdl", "headless"]


@dataclass(frozen=True, kw_only=True)
class Chain:
    """The programs that a session runs, found in the guest or staged.

    Attributes:
        client: what droiddeck-inner starts, or None for `run`, which has no chain.
        real_client: whether that is a Steam client of the guest's, no stand-in and no desktop.
        gamescope: the guest's, if it is used.
        mangoapp: whether gamescope starts the overlay.
        stand_ins: names of the stand-ins that take the place of what the guest lacks.
        staged: programs and texts below programs/.
    """

    client: str | None = None
    real_client: bool = False
    gamescope: str | None = None
    mangoapp: bool = False
    stand_ins: tuple[str, ...] = ()
    staged: tuple[StagedFile, ...] = ()

    def names(self) -> dict[str, str]:
        """Return what names of variables' values stand for."""
        found = {
            "client": self.client if self.real_client else None,
            "gamescope": self.gamescope,
            "mangohud_config": f"{PROGRAMS}/{_MANGOHUD_CONFIG}" if self.mangoapp else None,
        }
        return {name: value for name, value in found.items() if value is not None}


def chain_questions() -> tuple[frozenset[str], frozenset[str]]:
    """Return the guest paths, and the paths below the home, that a chain depends on."""
    return frozenset({PYTHON, *_GAMESCOPE, *_MANGOAPP, *_CLIENTS, *_DESKTOPS}), frozenset(_CLIENTS_IN_HOME)


def find_chain(request: Request, settings: Settings, guest: GuestFacts | None, home: str) -> Chain:
    """Return the programs of a session.

    Args:
        request: the kind of session, its program or URL.
        settings: whether the overlay is wanted.
        guest: the rootfs.
        home: of the session's user.

    Raises:
        PlanError: the program's name or the URL cannot be meant, or the guest lacks what every chain needs.
    """
    if request.kind == "run":
        _check_program(request)
        return Chain()
    if request.url is not None and not request.url.startswith("steam://"):
        raise PlanError(
            code="INVALID_STEAM_URL",
            message=f"{request.url!r} is not a Steam URL",
            hint="a Steam URL begins with steam://, as steam://rungameid/480",
        )
    if guest is None:
        raise PlanError(
            code="NO_ROOTFS",
            message=f"{request.kind}: the chosen backend has no rootfs to run it in",
            hint="choose another backend: --backend auto",
        )
    if not guest.paths[PYTHON].executable:
        raise PlanError(
            code="NO_PYTHON",
            message=f"guest {guest.name!r} has no {PYTHON}, which the session's own programs need",
            hint=f"install it: droiddeck-session guest shell {guest.name}, then apt install python3-minimal",
        )
    if request.kind == "desktop":
        client = _first(guest, _DESKTOPS)
        gamescope = None
    else:
        client = _first(guest, (*(f"{home}/{path}" for path in _CLIENTS_IN_HOME), *_CLIENTS))
        gamescope = _first(guest, _GAMESCOPE)
    overlay = settings.steam.mangoapp and settings.steam.deck and settings.steam.ui != "desktop"
    stand_ins = () if client else _STAND_INS[request.kind]
    mangoapp = gamescope is not None and overlay and _first(guest, _MANGOAPP) is not None
    return Chain(
        client=client or f"{PROGRAMS}/stand-in/{request.kind}",
        real_client=client is not None and request.kind == "steam",
        gamescope=gamescope,
        mangoapp=mangoapp,
        stand_ins=stand_ins,
        staged=_staged(stand_ins, mangoapp=mangoapp),
    )


def command_line(
    chain: Chain, request: Request, settings: Settings, display: Display, variables: Collection[str]
) -> tuple[str, ...]:
    """Return what runs in the guest, `env -i NAME=VALUE...` not yet in front of it.

    Args:
        chain: the programs.
        request: the program of `run`, or the URL.
        settings: the output and the client.
        display: what gamescope draws to.
        variables: names that the session's environment has; what is set there is not set again.
    """
    if chain.client is None:
        return request.argv
    inner = [f"{PROGRAMS}/droiddeck-inner", request.kind]
    arguments: tuple[str, ...] = ()
    if request.kind == "steam":
        inner += ["--restart-status", str(RESTART_STATUS), "--restarts", str(RESTARTS)]
        # Apart from the client's arguments: they are not repeated when it starts again.
        inner += [URL_OPTION, request.url] if request.url is not None else []
        arguments = _client_arguments(settings)
    if chain.gamescope:
        nested = (f"{name}={value}" for name, value in _NESTED.items() if name not in variables)
        outer = (*_gamescope(chain, settings.display, display), ENV, *nested)
    else:
        outer = ()
    return (*outer, *inner, "--", chain.client, *arguments)


def _client_arguments(settings: Settings) -> tuple[str, ...]:
    steam = settings.steam
    return (
        *(("-gamepadui",) if steam.ui == "bigpicture" else ()),
        *(("-steamdeck", "-steamos3") if steam.deck else ()),
        *("-language", steam.language),
        *("-clientbeta", steam.channel),
        "-no-cef-sandbox",
        "-cef-force-gpu",
        "-cef-ozone-platform=x11",
        "-cef-use-gl=angle",
        "-cef-use-angle=vulkan",
    )


def _gamescope(chain: Chain, output: DisplaySettings, display: Display) -> tuple[str, ...]:
    widened = output.height * 16 // 9 // 2 * 2
    nested = widened if output.stretch_16x9 and widened > output.width else output.width
    rate = output.fps or output.refresh
    return (
        chain.gamescope or "",
        *("--backend", display, "--expose-wayland", "-f"),
        *("-W", str(output.width), "-H", str(output.height), "-w", str(nested), "-h", str(output.height)),
        *(("-S", "stretch") if nested != output.width else ()),
        *(("-r", str(rate)) if rate else ()),
        *("-e", "--xwayland-count", "2", "--default-touch-mode", "4"),
        *(("--hdr-enabled",) if output.hdr else ()),
        *(("--rt",) if output.realtime else ()),
        *(("--mangoapp",) if chain.mangoapp else ()),
        "--",
    )


def _check_program(request: Request) -> None:
    if not request.argv:
        raise PlanError(
            code="NO_PROGRAM", message="run: no program given", hint="droiddeck-session run [OPTIONS] -- PROGRAM [ARGS]"
        )
    if "=" in request.argv[0]:
        raise PlanError(
            code="PROGRAM_NAME",
            message=f"{request.argv[0]!r}: env(1) takes a program with = in its name for a variable",
            hint="start it through a shell: sh -c 'exec \"$0\"' NAME, or give it another name",
        )


def _first(guest: GuestFacts, places: Iterable[str]) -> str | None:
    return next((path for path in places if path in guest.paths and _runs(guest, path)), None)


def _runs(guest: GuestFacts, path: str) -> bool:
    return guest.paths[path].kind == "file" and guest.paths[path].executable


def _staged(stand_ins: Iterable[str], *, mangoapp: bool) -> tuple[StagedFile, ...]:
    programs = [*_INNER]
    programs += [(f"stand-in/{name}", f"stand_in_{name.replace('-', '_')}.py") for name in stand_ins]
    files = [StagedFile(path=f"programs/{path}", program=source, mode=0o755) for path, source in programs]
    if mangoapp:
        files.append(StagedFile(path=f"programs/{_MANGOHUD_CONFIG}", content="no_display\n"))
    return tuple(files)
