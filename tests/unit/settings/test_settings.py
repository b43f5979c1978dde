# SPDX-License-Identifier: GPL-3.0-or-later
"""The five layers: who wins, who is named, and what each refuses."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droiddeck_session.errors import SettingError
from droiddeck_session.layers import TableFile, parse
from droiddeck_session.paths import Directories, vendor_file
from droiddeck_session.setting_keys import Key, toml_value
from droiddeck_session.setting_layers import Sourced, merge, of_environment, of_file, of_flags
from droiddeck_session.settings import FILE_NAME, GUEST_NAME, KEYS, NO_LAYER, LoadedSettings, Settings, combined, load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VENDOR = f"vendor config/{FILE_NAME}"

GUEST_WORDS = "a guest's name (1 to 64 of a-z, 0-9, '.', '_', '-', letter or digit first) or an absolute path"

plain = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
hosts = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?", fullmatch=True)
variables = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


def values_of(key: Key) -> st.SearchStrategy[Any]:
    """Return what a key may be set to; None, which files write as an empty text, where it may be unset."""
    least, greatest = key.limits or (0, 0)
    if key.name == "guest.hostname":
        return hosts | st.none()
    if key.name == "guest.name":
        return st.from_regex(GUEST_NAME, fullmatch=True) | st.text(plain, max_size=5).map("/".__add__)
    if key.name in {"session.before", "session.after", "session.ready_command"}:
        return st.lists(st.text(plain, min_size=1, max_size=5), min_size=1, max_size=3).map(shlex.join) | st.none()
    if key.path[0] == "android" or key.name in {"session.ready_file", "session.ready_socket"}:
        return st.text(plain, max_size=5).map("/".__add__) | st.none()
    by_kind: dict[str, st.SearchStrategy[Any]] = {
        "boolean": st.booleans(),
        "choice": st.sampled_from(key.choices or ("",)),
        "whole number": st.integers(least, greatest),
        "number": st.floats(least, greatest).map(abs),
        "text": st.text(plain, min_size=1, max_size=8) | (st.none() if key.default is None else st.nothing()),
    }
    return by_kind[key.kind]


@st.composite
def settings_by_key(draw: Callable[[Any], Any], *, only_flags: bool = False) -> dict[str, object]:
    rows = [key for key in KEYS.values() if key.flag or not only_flags]
    chosen = draw(st.lists(st.sampled_from(rows), max_size=6, unique_by=lambda key: key.name))
    values = {key.name: draw(values_of(key)) for key in chosen}
    if not only_flags:
        own = draw(st.dictionaries(variables, st.text(plain, max_size=8), max_size=3))
        values |= {f"environment.{name}": value for name, value in own.items()}
    return values


def as_toml(values: Mapping[str, object]) -> str:
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in values.items())


def as_environment(values: Mapping[str, object]) -> dict[str, str]:
    def variable(name: str) -> str:
        return f"DROIDDECK_ENVIRONMENT_{name[12:]}" if name.startswith("environment.") else KEYS[name].variable

    def text(value: object) -> str:
        return "" if value is None else format(value, "f") if isinstance(value, float) else str(value)

    return {variable(name): text(value) for name, value in values.items()}


def value_at(settings: Settings, name: str) -> object:
    section, _, key = name.partition(".")
    return settings.model_dump()[section].get(key)


def folders(top: Path) -> Directories:
    return Directories(config=top / "user", data=top / "data", state=top / "state", cache=top / "cache")


def loaded(
    top: Path, *, environ: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None
) -> LoadedSettings:
    return load(directories=folders(top), environ=environ or {}, flags=flags or {}, system=top / "system")


def write(top: Path, layer: str, text: str) -> str:
    path = top / layer / FILE_NAME
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return os.fspath(path)


def test_the_vendor_sets_every_key_to_the_default_of_its_model(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    assert found.settings == Settings()
    assert {key: found.origin(key) for key in KEYS} == dict.fromkeys(KEYS, VENDOR)


def test_each_layer_wins_over_those_before_it_and_is_named(tmp_path: Path) -> None:
    system = write(
        tmp_path, "system", "[display]\nwidth = 2\nheight = 2\nrefresh = 2\n[environment]\nA = '2'\nB = '2'\n"
    )
    user = write(tmp_path, "user", "display.height = 3\ndisplay.refresh = 3\n[environment]\nB = '3'\n")
    environ = {"DROIDDECK_DISPLAY_REFRESH": "4", "DROIDDECK_ENVIRONMENT_C": "4", "HOME": "/"}
    found = loaded(tmp_path, environ=environ, flags={"guest.name": "five"})
    display = found.settings.display
    assert (display.fps, display.width, display.height, display.refresh) == (0, 2, 3, 4)
    assert found.settings.guest.name == "five"
    assert found.settings.environment == {"A": "2", "B": "3", "C": "4"}
    origins = {key: found.origin(key) for key in ("display.fps", "display.width", "display.height", "display.refresh")}
    assert origins == {
        "display.fps": VENDOR, "display.width": system, "display.height": user,
        "display.refresh": "environment DROIDDECK_DISPLAY_REFRESH",
    }  # fmt: skip
    assert found.origin("guest.name") == "flag --guest"
    assert [found.origin(f"environment.{name}") for name in "ABC"] == [
        system,
        user,
        "environment DROIDDECK_ENVIRONMENT_C",
    ]


@given(st.lists(settings_by_key(), max_size=3), settings_by_key(), settings_by_key(only_flags=True))
def test_of_every_key_the_last_layer_that_sets_it_wins_and_is_its_origin(
    files: list[dict[str, object]], environ: dict[str, object], flags: dict[str, object]
) -> None:
    layers = [of_file(TableFile(f"file{number}", as_toml(values)), Settings) for number, values in enumerate(files)]
    layers += [of_environment(as_environment(environ), Settings), of_flags(flags, Settings)]
    assert [layer.faults for layer in layers] == [()] * len(layers)
    found = combined(tuple(layers))
    last: dict[str, tuple[object, str]] = {}
    for number, values in enumerate(files):
        last |= {name: (value, f"file{number}") for name, value in values.items()}
    variable_of = dict(zip(environ, as_environment(environ), strict=True))
    last |= {name: (value, f"environment {variable_of[name]}") for name, value in environ.items()}
    last |= {name: (value, f"flag {KEYS[name].flag}") for name, value in flags.items()}
    assert dict(found.origins) == {name: origin for name, (_, origin) in last.items()}
    for name, (value, _) in last.items():
        tolerance = 1e-6 if isinstance(value, float) else 0
        assert value_at(found.settings, name) == (pytest.approx(value, abs=tolerance) if tolerance else value)
    unset = {name: value_at(found.settings, name) for name in KEYS if name not in last}
    assert unset == {name: KEYS[name].default for name in unset}
    assert all(found.origin(name) == NO_LAYER for name in unset)


layer_values = st.dictionaries(st.sampled_from("abcd"), st.builds(Sourced, st.integers(), st.text(max_size=2)))


@given(layer_values, layer_values, layer_values)
def test_merging_is_associative_and_nothing_is_its_neutral(
    first: dict[str, Sourced], second: dict[str, Sourced], third: dict[str, Sourced]
) -> None:
    assert merge(merge(first, second), third) == merge(first, merge(second, third)) == merge(first, second, third)
    assert merge({}, first) == merge(first, {}) == first


@given(settings_by_key())
def test_what_is_written_as_toml_is_read_back(values: dict[str, object]) -> None:
    layer = of_file(TableFile("f", as_toml(values)), Settings)
    assert {name: sourced.value for name, sourced in layer.values.items()} == values


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_toml(text: str) -> None:
    assert parse(TableFile("f", f"a = {toml_value(text)}")) == {"a": text}


@pytest.mark.parametrize("value", ["d3dcompiler_47=n,b", 'A=b c "d"', "", " trailing ", "a\nb", "$HOME `id` \\", "ä"])
def test_a_variable_of_the_guest_is_taken_literally(tmp_path: Path, value: str) -> None:
    write(tmp_path, "user", f"[environment]\nFROM_FILE = {toml_value(value)}\n")
    found = loaded(tmp_path, environ={"DROIDDECK_ENVIRONMENT_from_here": value})
    assert found.settings.environment == {"FROM_FILE": value, "from_here": value}


def test_bytes_that_are_not_utf_8_come_through_the_environment_and_options(tmp_path: Path) -> None:
    path = os.fsdecode(b"/guests/\xff:a b\n")
    found = loaded(tmp_path, environ={"DROIDDECK_ANDROID_FILES": path}, flags={"guest.name": path})
    assert (found.settings.android.files, found.settings.guest.name) == (path, path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(text, True) for text in ("true", "Yes", "on", "1")],
        *[(text, False) for text in ("false", "NO", "off", "0")],
    ],
)
def test_a_boolean_of_the_environment_has_four_words_for_each_value(tmp_path: Path, text: str, *, value: bool) -> None:
    assert loaded(tmp_path, environ={"DROIDDECK_STEAM_XALIA": text}).settings.steam.xalia is value


def test_an_empty_text_unsets_what_a_weaker_layer_set(tmp_path: Path) -> None:
    write(tmp_path, "system", "[guest]\nhostname = 'deck'\n[backend]\nproot = '/opt/proot'\n")
    write(tmp_path, "user", "[guest]\nhostname = ''\n")
    found = loaded(tmp_path, environ={"DROIDDECK_BACKEND_PROOT": ""})
    assert (found.settings.guest.hostname, found.settings.backend.proot) == (None, None)
    assert found.origin("backend.proot") == "environment DROIDDECK_BACKEND_PROOT"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[display]\n\nwidth = 0\n", "FILE:3: display.width: must be at least 1, not 0"),
        ("display.width = 16385\n", "FILE:1: display.width: must be at most 16384, not 16385"),
        ("[display]\nwidth = '1280'\n", "FILE:2: display.width: must be a whole number"),
        ("[display]\nwidth = true\n", "FILE:2: display.width: must be a whole number"),
        ("[display]\nwidth = 1.5\n", "FILE:2: display.width: must be a whole number"),
        ("[display]\nhdr = 1\n", "FILE:2: display.hdr: must be true or false"),
        ("[display]\nwdith = 1\n", "FILE:2: display.wdith: unknown key; did you mean width?"),
        ("width = 1\n", "FILE:1: width: unknown key; did you mean display.width?"),
        ("[dipslay]\nwidth = 1\n", "FILE:1: dipslay: unknown key; did you mean display?"),
        ("[session]\ngrace = nan\n", "FILE:2: session.grace: must be a finite number"),
        ("[session]\ngrace = 1979-05-27\n", "FILE:2: session.grace: must be a number"),
        ("guest = 'demo'\n", "FILE:1: guest: must be a table"),
        ("[[guest]]\nname = 'demo'\n", "FILE:1: guest: must be a table"),
        ("[guest]\nname = ''\n", "FILE:2: guest.name: must not be empty"),
        ('[guest]\nname = "a\\u0000"\n', "FILE:2: guest.name: holds a NUL, which no path, argument or variable can"),
        ("[guest]\nname = '../x'\n",
         f"FILE:2: guest.name: must be {GUEST_WORDS}"),
        ("[guest]\nidentity = 'boss'\n", "FILE:2: guest.identity: must be 'caller' or 'root', not 'boss'"),
        ("[guest]\nhostname = 'a_b'\n",
         "FILE:2: guest.hostname: must be 1 to 63 letters, digits or hyphens, not led or ended by a hyphen"),
        ("[android]\nfiles = 'a/b'\n", "FILE:2: android.files: must be an absolute path"),
        ("[environment]\n'' = 'x'\n",
         'FILE:2: environment."": is no name of a variable: letters, digits and _, not led by a digit'),
        ("[environment]\n'A=B' = 'x'\n",
         'FILE:2: environment."A=B": is no name of a variable: letters, digits and _, not led by a digit'),
        ("[environment]\nDROIDDECK_SESSION = 'x'\n",
         "FILE:2: environment.DROIDDECK_SESSION: is set by the session itself"),
        ("[environment]\nA = 1\n", "FILE:2: environment.A: must be a text in quotes"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_by_file_line_and_key(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path, "user", text)
    with pytest.raises(SettingError) as refusal:
        loaded(tmp_path)
    assert refusal.value.message == message.replace("FILE", file)
    assert refusal.value.hint


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("DROIDDECK_DISPLAY_WIDTH", "0", "display.width: must be at least 1, not 0"),
        ("DROIDDECK_DISPLAY_WIDTH", "12e2", "display.width: must be a whole number"),
        ("DROIDDECK_DISPLAY_WIDTH", "", "display.width: must be a whole number"),
        ("DROIDDECK_DISPLAY_WIDTH", "9" * 5000, "display.width: must be a whole number"),
        ("DROIDDECK_SESSION_GRACE", "inf", "session.grace: must be a number"),
        ("DROIDDECK_STEAM_DECK", "maybe", "steam.deck: must be true or false"),
        ("DROIDDECK_GUEST_IDENTITY", "", "guest.identity: must be 'caller' or 'root', not ''"),
        ("DROIDDECK_GUEST_NMAE", "x", "guest.nmae: unknown key; did you mean DROIDDECK_GUEST_NAME?"),
        ("DROIDDECK_FAST_PATH_ENABLE", "1", "fast_path.enable: unknown key; did you mean DROIDDECK_FAST_PATH_ENABLED?"),
        ("DROIDDECK_ENVIRONMENT_", "x",
         'environment."": is no name of a variable: letters, digits and _, not led by a digit'),
        ("DROIDDECK_ENVIRONMENT_1A", "x",
         "environment.1A: is no name of a variable: letters, digits and _, not led by a digit"),
    ],
)  # fmt: skip
def test_a_wrong_variable_is_refused_by_its_name(tmp_path: Path, variable: str, value: str, message: str) -> None:
    with pytest.raises(SettingError) as refusal:
        loaded(tmp_path, environ={variable: value})
    assert refusal.value.message == f"environment {variable}: {message}"


@pytest.mark.parametrize(
    "variable", ["DROIDDECK_SESSION", "DROIDDECK_OTHER_KEY", "DROIDDECK_", "DROIDDECK_guest_name", "DROIDDECKX"]
)
def test_variables_of_no_section_are_left_to_their_owners(tmp_path: Path, variable: str) -> None:
    assert loaded(tmp_path, environ={variable: "x"}).settings == Settings()


def test_every_key_has_a_variable_and_an_option_of_its_own() -> None:
    names = [key.variable for key in KEYS.values()]
    names += [key.flag for key in KEYS.values() if key.flag]
    assert len(set(names)) == len(names)
    assert "DROIDDECK_DISPLAY_STRETCH_16X9" in names


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"display.width": 0}, "flag --width: display.width: must be at least 1, not 0"),
        ({"guest.nmae": "x"}, "flag: guest.nmae: unknown key; did you mean guest.name?"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(tmp_path: Path, flags: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError) as refusal:
        loaded(tmp_path, flags=flags)
    assert refusal.value.message == message


def test_of_two_wrong_layers_the_weaker_is_told_first(tmp_path: Path) -> None:
    system = write(tmp_path, "system", "x = 1\n")
    os.mkfifo(Path(write(tmp_path, "user", "")).with_suffix(".pipe"))
    (tmp_path / "user" / FILE_NAME).unlink()
    (tmp_path / "user" / "config.pipe").rename(tmp_path / "user" / FILE_NAME)
    with pytest.raises(SettingError, match="unknown key") as refusal:
        loaded(tmp_path)
    assert refusal.value.message.startswith(system)
    (tmp_path / "system" / FILE_NAME).unlink()
    with pytest.raises(SettingError, match="not a regular file"):
        loaded(tmp_path)


def test_no_value_of_the_guests_variables_is_in_an_error_or_in_the_settings_own_text(tmp_path: Path) -> None:
    found = loaded(tmp_path, environ={"DROIDDECK_ENVIRONMENT_TOKEN": "hunter2"})
    assert "hunter2" not in repr(found)
    assert "hunter2" not in repr(of_environment({"DROIDDECK_ENVIRONMENT_TOKEN": "hunter2"}, Settings))
    for environ in ({"DROIDDECK_ENVIRONMENT_A-B": "hunter2"}, {"DROIDDECK_ENVIRONMENT_A": "hunter2\0"}):
        with pytest.raises(SettingError) as refusal:
            loaded(tmp_path, environ=environ)
        assert "hunter2" not in refusal.value.message + refusal.value.hint
    write(tmp_path, "user", "[environment]\nA = ['hunter2']\n")
    with pytest.raises(SettingError, match=r"environment\.A: ") as refusal:
        loaded(tmp_path)
    assert "hunter2" not in refusal.value.message + refusal.value.hint


def test_a_file_that_a_crash_cut_off_is_refused_or_read_but_never_half_believed(tmp_path: Path) -> None:
    whole = vendor_file(FILE_NAME).read_bytes()
    path = Path(write(tmp_path, "user", ""))
    for end in range(0, len(whole), 7):
        for content in (whole[:end], whole[:end] + b"\0" * 64):
            path.write_bytes(content)
            try:
                told: str = loaded(tmp_path).settings.guest.identity
            except SettingError as refusal:
                told = refusal.message
            assert told == "caller" or told.startswith(f"{path}:")


def test_settings_that_no_layer_set_are_the_defaults() -> None:
    assert LoadedSettings(Settings()).origin("guest.name") == NO_LAYER
