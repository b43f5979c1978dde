# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs in a session of each kind, by what the guest has and what the settings say."""

from __future__ import annotations

import pytest
from plan_hosts import DEBIAN_ROOT, DEBIAN_USER, ROOT, TRACER, run

from droiddeck_session.errors import PlanError
from droiddeck_session.plan.request import Request
from droiddeck_session.settings import DisplaySettings, Settings, SteamSettings

STEAM = Request(kind="steam")
NESTED = ("/usr/bin/env", "GDK_BACKEND=x11", "QT_QPA_PLATFORM=xcb", "SDL_VIDEODRIVER=x11")
INNER = ("/opt/droiddeck/droiddeck-inner", "steam", "--restart-status", "42", "--restarts", "3")


def gamescope(**display: object) -> tuple[str, ...]:
    argv = DEBIAN_USER.plan(STEAM, settings=Settings(display=DisplaySettings.model_validate(display))).argv
    return argv[: argv.index("--")]


def test_run_is_the_program_by_itself() -> None:
    plan = DEBIAN_USER.plan(run(argv=("printf", "%s", "", "--", "a=b")))
    assert plan.argv == ("printf", "%s", "", "--", "a=b")
    assert plan.stand_ins == ()
    assert "/opt/droiddeck" not in [bind.guest for bind in plan.binds]


@pytest.mark.parametrize(("argv", "code"), [((), "NO_PROGRAM"), (("a=b", "c"), "PROGRAM_NAME")])
def test_a_program_that_cannot_be_meant_is_refused(argv: tuple[str, ...], code: str) -> None:
    with pytest.raises(PlanError) as refusal:
        DEBIAN_ROOT.plan(run(argv=argv))
    assert refusal.value.code == code


def test_a_guest_without_a_client_gets_the_stand_in_and_is_told() -> None:
    plan = DEBIAN_ROOT.plan(Request(kind="steam", url="steam://rungameid/480"))
    assert plan.argv[: len(INNER) + 4] == (
        *INNER,
        "--url",
        "steam://rungameid/480",
        "--",
        "/opt/droiddeck/stand-in/steam",
    )
    assert plan.stand_ins == ("steam", "web-helper", "reaper", "proton", "game")
    staged = {file.path: file for file in plan.staged}
    for name in plan.stand_ins:
        assert staged[f"programs/stand-in/{name}"].mode == 0o755


def test_every_staged_program_is_one_that_there_is() -> None:
    plans = [DEBIAN_ROOT.plan(Request(kind=kind)) for kind in ("steam", "desktop")]
    sources = {file.program for plan in plans for file in plan.staged if file.program}
    folder = ROOT / "droiddeck_session" / "guest" / "programs"
    assert sources
    assert [name for name in sources if not (folder / name).is_file()] == []


def test_the_guest_s_client_runs_in_the_guest_s_gamescope() -> None:
    plan = DEBIAN_USER.plan(STEAM)
    assert plan.stand_ins == ()
    first, second = (index for index, word in enumerate(plan.argv) if word == "--")
    assert plan.argv[0] == "/usr/games/gamescope"
    assert plan.argv[first + 1 : second] == (*NESTED, *INNER)
    assert plan.argv[second + 1 :][:4] == ("/usr/games/steam", "-gamepadui", "-steamdeck", "-steamos3")
    assert not [file for file in plan.staged if "stand-in" in file.path]


def test_what_the_user_sets_is_not_set_again_inside_gamescope() -> None:
    plan = DEBIAN_USER.plan(
        Request(kind="steam", variables=(("GDK_BACKEND", "wayland"),)),
        settings=Settings(environment={"SDL_VIDEODRIVER": "wayland"}),
    )
    assert [word for word in plan.argv if "=" in word and not word.startswith("-")] == ["QT_QPA_PLATFORM=xcb"]
    # Without gamescope there is no second display to point at.
    assert not set(NESTED) & set(DEBIAN_ROOT.plan(STEAM).argv)


def test_only_a_real_client_gets_the_client_s_environment() -> None:
    told = {"STEAM_RUNTIME": "1", "SDL_VIDEO_X11_DGAMOUSE": "0"}
    for machine, expected in ((DEBIAN_USER, told), (DEBIAN_ROOT, {})):
        plan = machine.plan(STEAM)
        assert {entry.name: entry.value for entry in plan.environment if entry.name in told} == expected
    desktop = DEBIAN_USER.having(guest={"/usr/bin/startlxqt": "file"}).plan(Request(kind="desktop"))
    assert not told.keys() & {entry.name for entry in desktop.environment}


def test_a_client_in_the_home_is_taken_first() -> None:
    machine = DEBIAN_USER.having(guest={"/root/.local/share/Steam/steamrtarm64/steam": "file"})
    assert "/root/.local/share/Steam/steamrtarm64/steam" in machine.plan(STEAM).argv


@pytest.mark.parametrize(
    ("display", "words"),
    [
        ({}, "-f -W 1280 -H 720 -w 1280 -h 720 -r 60 -e"),
        ({"width": 960, "height": 720, "stretch_16x9": True}, "-W 960 -H 720 -w 1280 -h 720 -S stretch -r 60"),
        ({"width": 1920, "height": 1080, "stretch_16x9": True}, "-W 1920 -H 1080 -w 1920 -h 1080 -r 60"),
        ({"width": 1000, "height": 721, "stretch_16x9": True}, "-w 1280 -h 721 -S stretch"),
        ({"fps": 40}, "-h 720 -r 40 -e"),
        ({"refresh": 0}, "-h 720 -e --xwayland-count 2 --default-touch-mode 4"),
        ({"hdr": True, "realtime": True}, "--default-touch-mode 4 --hdr-enabled --rt --mangoapp"),
    ],
)
def test_gamescope_is_told_the_output(display: dict[str, object], words: str) -> None:
    assert f" {words} " in f"{' '.join(gamescope(**display))} "


def test_gamescope_draws_to_what_the_caller_has() -> None:
    backends = {
        machine.plan(STEAM).argv[2]: machine
        for machine in (
            DEBIAN_USER,
            DEBIAN_USER.having(more={"wayland_display": None}),
            DEBIAN_USER.having(more={"wayland_display": None, "x_display": None}),
        )
    }
    assert list(backends) == ["wayland", "sdl", "headless"]


def test_the_overlay_needs_its_program_and_a_deck() -> None:
    assert "--mangoapp" in gamescope()
    config = [entry.value for entry in DEBIAN_USER.plan(STEAM).environment if entry.name == "MANGOHUD_CONFIGFILE"]
    assert config == ["/opt/droiddeck/mangohud.conf"]
    assert "--mangoapp" not in DEBIAN_USER.having(guest={"/usr/bin/mangoapp": "missing"}).plan(STEAM).argv
    for steam in (SteamSettings(deck=False), SteamSettings(mangoapp=False), SteamSettings(ui="desktop")):
        plan = DEBIAN_USER.plan(STEAM, settings=Settings(steam=steam))
        assert "--mangoapp" not in plan.argv
        assert "MANGOHUD_CONFIGFILE" not in [entry.name for entry in plan.environment]


def test_the_client_is_told_its_settings() -> None:
    steam = SteamSettings(deck=False, ui="desktop", language="german", channel="beta")
    argv = DEBIAN_USER.plan(STEAM, settings=Settings(steam=steam)).argv
    assert {"-gamepadui", "-steamdeck", "-steamos3"}.isdisjoint(argv)
    client = argv[argv.index("/usr/games/steam") :]
    assert client[1:5] == ("-language", "german", "-clientbeta", "beta")


@pytest.mark.parametrize("url", ["", "http://example.invalid/", "steam:/x", "STEAM://x", " steam://x"])
def test_a_steam_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(PlanError, match="is not a Steam URL") as refusal:
        DEBIAN_ROOT.plan(Request(kind="steam", url=url))
    assert refusal.value.code == "INVALID_STEAM_URL"
    assert repr(url) in refusal.value.message


def test_a_desktop_has_no_gamescope_and_a_stand_in_too() -> None:
    plan = DEBIAN_USER.plan(Request(kind="desktop"))
    assert plan.argv == ("/opt/droiddeck/droiddeck-inner", "desktop", "--", "/opt/droiddeck/stand-in/desktop")
    assert plan.stand_ins == ("desktop",)
    real = DEBIAN_USER.having(guest={"/usr/bin/startlxqt": "file"}).plan(Request(kind="desktop"))
    assert real.argv[-1] == "/usr/bin/startlxqt"


def test_a_guest_without_python_is_refused_where_it_is_needed() -> None:
    machine = DEBIAN_ROOT.having(guest={"/usr/bin/python3": "missing"})
    assert machine.plan(run()).argv == ("true",)
    with pytest.raises(PlanError, match=r"guest 'demo' has no /usr/bin/python3") as refusal:
        machine.plan(STEAM)
    assert "apt install" in refusal.value.hint


def test_a_chain_needs_a_rootfs() -> None:
    direct = DEBIAN_ROOT.having(capabilities=TRACER.model_copy(update={"rootfs": False}))
    with pytest.raises(PlanError) as refusal:
        direct.plan(STEAM)
    assert refusal.value.code == "NO_ROOTFS"
