# SPDX-License-Identifier: GPL-3.0-or-later
"""What `guest create` asks of mmdebstrap, and what it refuses before it asks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from droiddeck_session.errors import DroiddeckError
from droiddeck_session.guest import create, mirror

if TYPE_CHECKING:
    from guest_trees import Workshop

TARGETS = """\
Debian Debian-Security http://mirror.example/debian-security/
Debian Debian mirror+file:/etc/apt/mirrors/debian.list
Debian Debian https://mirror.example/debian/
Debian Debian http://second.example/debian/
. nodistro https://other.example/node/
Some Firm A Label With Spaces https://firm.example/apt/
"""


def attempt(workshop: Workshop, recipe: create.Recipe) -> str:
    """Return the code of the refusal; nothing of an attempt that is refused is left."""
    with pytest.raises(DroiddeckError) as refused:
        create.create(
            workshop.store,
            recipe,
            cache=workshop.folders.cache,
            environ=dict(os.environ),
            points=(),
            tell=lambda *_: None,
        )
    assert not workshop.guests.exists()
    assert refused.value.hint
    return refused.value.code


def test_the_command_line_names_everything_that_was_asked_for() -> None:
    recipe = create.Recipe(name="demo", suite="sid", include=("vim", "git"))
    argv = create.command(recipe, "arm64", "/a b/rootfs", ("deb x sid main",), root=False)
    assert argv[:4] == ("mmdebstrap", "--mode=unshare", "--variant=minbase", "--format=directory")
    assert {"--architectures=arm64", "--include=python3,vim,git"} <= set(argv)
    assert argv[-3:] == ("sid", "/a b/rootfs", "deb x sid main")
    assert "--mode=root" in create.command(recipe, "arm64", "/r", (), root=True)


@pytest.mark.parametrize("suite", ["", "-x", "a b", "../sid", "trixie;", "Trixie", "deb http://x", "trixie\n"])
def test_a_suite_that_is_none_is_refused(workshop: Workshop, suite: str) -> None:
    assert attempt(workshop, create.Recipe(name="demo", suite=suite)) == "BAD_SUITE"


@pytest.mark.parametrize("package", ["", "-vim", "?essential", "./x.deb", "/x.deb", "vim git", "~n", "vim\n", "v"])
def test_a_package_that_is_none_is_refused(workshop: Workshop, package: str) -> None:
    assert attempt(workshop, create.Recipe(name="demo", include=(package,))) == "BAD_PACKAGE"


@pytest.mark.parametrize("package", ["vim", "libstdc++6", "libc6:i386", "git=1:2.47.3-0+deb13u1", "vim/trixie"])
def test_packages_are_named_as_apt_does(package: str) -> None:
    create._check_words(create.Recipe(name="demo", include=(package,)))


@pytest.mark.parametrize("arch", ["vax", "../arm64", "arm64 ", "\0"])
def test_an_architecture_that_cannot_run_here_is_refused(workshop: Workshop, arch: str) -> None:
    assert attempt(workshop, create.Recipe(name="demo", arch=arch)) == "FOREIGN_ARCHITECTURE"


def test_a_machine_without_mmdebstrap_is_told_what_to_install(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DroiddeckError) as refused:
        create.create(
            workshop.store, create.Recipe(name="demo"), cache=tmp_path, environ={}, points=(), tell=lambda *_: None
        )
    assert refused.value.code == "MISSING_TOOL"
    assert refused.value.hint == "apt-get install apt dpkg mmdebstrap util-linux"


def test_of_the_machines_sources_only_debians_own_over_the_network_count() -> None:
    assert mirror._known(TARGETS) == {
        "Debian-Security": "http://mirror.example/debian-security/",
        "Debian": "https://mirror.example/debian/",
    }
    assert mirror._known("") == {}


def lines_for(suite: str, targets: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setattr(mirror, "_targets", lambda: targets)
    return mirror.sources(suite, Path("/k.gpg"))


def test_a_release_gets_its_updates_and_security_from_the_same_mirrors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines_for("trixie", TARGETS, monkeypatch) == (
        "deb [signed-by=/k.gpg] https://mirror.example/debian/ trixie main",
        "deb [signed-by=/k.gpg] https://mirror.example/debian/ trixie-updates main",
        "deb [signed-by=/k.gpg] http://mirror.example/debian-security/ trixie-security main",
    )


def test_a_rolling_suite_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines_for("sid", TARGETS, monkeypatch) == ("deb [signed-by=/k.gpg] https://mirror.example/debian/ sid main",)


def test_a_machine_whose_apt_knows_no_debian_leaves_the_mirror_to_mmdebstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines_for("trixie", "Ubuntu Ubuntu http://mirror.example/ubuntu/\n", monkeypatch) == ()
