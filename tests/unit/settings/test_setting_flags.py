# SPDX-License-Identifier: GPL-3.0-or-later
"""Options made from the settings' table: what they accept, and what they give."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from droiddeck_session.cli.setting_flags import flag_options, given_flags
from droiddeck_session.setting_layers import of_flags
from droiddeck_session.settings import KEYS, Settings

WITH_OPTION = [key.name for key in KEYS.values() if key.flag]


def given(*arguments: str) -> dict[str, object]:
    """Return what a verb with all options takes from a command line."""
    found: list[dict[str, object]] = []

    @click.command()
    @click.option("--bind", "binds", multiple=True)
    @flag_options(WITH_OPTION)
    def verb(**options: Any) -> None:
        assert options["binds"] == ()
        found.append(given_flags(options))

    verb.main(list(arguments), standalone_mode=False)
    return found[0]


def test_an_option_that_is_not_given_sets_nothing() -> None:
    assert given() == {}


def test_options_give_values_of_their_settings_types() -> None:
    arguments = "--guest g --hostname= --identity root --grace 0.2 --width 800 --no-hdr --fast-path"
    flags = given(*arguments.split())
    assert flags == {
        "guest.name": "g", "guest.hostname": "", "guest.identity": "root", "session.grace": 0.2, "display.width": 800,
        "display.hdr": False, "fast_path.enabled": True,
    }  # fmt: skip
    layer = of_flags(flags, Settings)
    assert layer.faults == ()
    assert layer.values["guest.hostname"].value is None
    assert layer.values["display.hdr"].origin == "flag --hdr"


@pytest.mark.parametrize("arguments", [["--width", "0"], ["--width", "x"], ["--identity", "boss"], ["--grace", "601"]])
def test_a_value_out_of_range_is_a_usage_error_that_names_the_option(arguments: list[str]) -> None:
    with pytest.raises(click.BadParameter, match=arguments[1]) as refusal:
        given(*arguments)
    assert f"'{arguments[0]}'" in refusal.value.format_message()


def test_a_not_a_number_that_click_lets_through_is_refused_by_the_settings() -> None:
    faults = of_flags(given("--grace", "nan"), Settings).faults
    assert [fault.message for fault in faults] == ["flag --grace: session.grace: must be a finite number"]


def test_help_describes_each_option_in_the_order_asked_for() -> None:
    @click.command()
    @flag_options(["display.hdr", "guest.name"])
    def verb(**options: Any) -> None:
        given_flags(options)

    text = CliRunner().invoke(verb, ["--help"]).output
    assert text.index("--hdr / --no-hdr") < text.index("High dynamic range.") < text.index("--guest TEXT")


def test_a_setting_without_an_option_has_none_to_give() -> None:
    with pytest.raises(ValueError, match=r"session\.keep has no option"):
        flag_options(["session.keep"])
