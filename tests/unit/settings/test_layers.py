# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a layer: which are read, what each unusable one is told to be, and where in it a fault is."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from droiddeck_session.errors import SettingError
from droiddeck_session.layers import (
    SIZE_LIMIT,
    TableFile,
    dotted,
    line_of,
    parse,
    read_file,
    read_layers,
    validation_error,
    validation_errors,
)
from droiddeck_session.paths import Directories

NAME = "config.toml"


def folders(top: Path) -> Directories:
    return Directories(config=top / "user", data=top / "data", state=top / "state", cache=top / "cache")


def test_the_vendor_comes_first_and_the_user_last(tmp_path: Path) -> None:
    for layer in ("system", "user"):
        (tmp_path / layer).mkdir()
        (tmp_path / layer / NAME).write_text(f"# {layer}\n")
    found = read_layers(NAME, folders(tmp_path), system=tmp_path / "system")
    assert [file.origin for file in found] == [
        f"vendor config/{NAME}", str(tmp_path / "system" / NAME), str(tmp_path / "user" / NAME)
    ]  # fmt: skip
    assert [file.text for file in found[1:]] == ["# system\n", "# user\n"]


def test_a_missing_file_is_no_layer(tmp_path: Path) -> None:
    assert read_layers("nothing.toml", folders(tmp_path), system=tmp_path) == ()


def test_a_home_that_is_no_folder_has_no_files(tmp_path: Path) -> None:
    (tmp_path / "user").write_text("")
    assert read_layers("nothing.toml", folders(tmp_path), system=Path("/dev/null")) == ()


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("a = 1\n")
    (tmp_path / NAME).symlink_to("real")
    assert read_file(tmp_path / NAME, "f") == TableFile("f", "a = 1\n")


def test_a_file_with_an_origin_that_is_not_utf_8_keeps_its_bytes(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a b:\n\xff"))
    (odd / "user").mkdir(parents=True)
    (odd / "user" / NAME).write_text("")
    assert os.fsencode(read_layers(NAME, folders(odd), system=tmp_path)[-1].origin).endswith(b"\xff/user/config.toml")


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"a = 1\nb = \xff\n", "BAD_TEXT", "f:2: byte 0xff is not UTF-8"),
        (b"\xef\xbb\xbfa = 1\n", "BAD_TEXT", "f:1: begins with a byte order mark"),
        ("a = 1\n".encode("utf-16"), "BAD_TEXT", "f:1: holds a NUL byte"),
        (b"\0" * 4096, "BAD_TEXT", "f:1: holds a NUL byte"),
        (b"a = 1\nb = \0\n", "BAD_TEXT", "f:2: holds a NUL byte"),
        (b"#" * (SIZE_LIMIT + 1), "UNREADABLE_FILE", "f: cannot be read: larger than 1 MiB"),
        (b"\0" * (5 << 20), "UNREADABLE_FILE", "f: cannot be read: larger than 1 MiB"),
        (b"a = 1\nb == 2\n", "BAD_TOML", "f:2:4: not TOML: Invalid value"),
        (b"a = 1\n[half", "BAD_TOML", "f:2:6: not TOML: "),
        (b'a = "half', "BAD_TOML", "f:1:10: not TOML: "),
        (b"a = 1\na = 2\n", "BAD_TOML", "f:2:6: not TOML: "),
        (b"a = 1\rb = 2\n", "BAD_TOML", "f:1:"),
        (b"a = " + b"[" * 100_000, "BAD_TOML", "f:1:1: not TOML: brackets are nested too deeply"),
        (b"a = " + b"9" * 5000, "BAD_TOML", "f:1:1: not TOML: a number has too many digits"),
    ],
)  # fmt: skip
def test_an_unusable_text_is_one_clear_error(tmp_path: Path, content: bytes, code: str, message: str) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(SettingError) as refusal:
        parse(read_file(tmp_path / NAME, "f", required=True) or TableFile("", ""))
    assert refusal.value.code == code
    assert refusal.value.message.startswith(message)
    assert "\n" not in refusal.value.message
    assert refusal.value.hint


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(path))


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


def make_device_link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize(
    "make", [make_pipe, make_socket, make_loop, make_device_link, Path.mkdir], ids=lambda make: make.__name__
)
def test_what_is_no_file_is_refused_by_name_and_does_not_block(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / NAME)
    before = descriptors()
    with pytest.raises(SettingError, match=r"^f: cannot be read: .") as refusal:
        read_file(tmp_path / NAME, "f")
    assert refusal.value.code == "UNREADABLE_FILE"
    assert descriptors() == before


def test_a_required_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"^f: cannot be read: No such file or directory$"):
        read_file(tmp_path / NAME, "f", required=True)


@given(st.binary(max_size=60) | st.text("a=[]{}\"'\n. #", max_size=40).map(str.encode))
def test_any_bytes_are_tables_or_a_setting_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(content)
    try:
        file = read_file(path, "f")
        tables = parse(file) if file else {}
    except SettingError as refusal:
        told = refusal.message
    else:
        assert file is not None
        told = "".join(f"f:{line_of(file, (key,))}" for key in tables) or "f:"
    assert told.startswith("f:")


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    has: list[str] = []


class Row(BaseModel):
    model_config = ConfigDict(extra="forbid")

    host: str
    read_only: bool = False
    when: Inner | None = None
    level: Annotated[int, Field(ge=1, le=3)] = 1


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid")

    bind: tuple[Row, ...] = ()


def faults_of(text: str) -> list[str]:
    file = TableFile("binds.toml", text)
    with pytest.raises(ValidationError) as refusal:
        Table.model_validate(parse(file))
    return [fault.message for fault in validation_errors(file, refusal.value, Table)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[bind]]\nhost = 1\n", "2: bind[0].host: must be a text in quotes"),
        ('[[bind]]\nhost = "/"\n[[bind]]\n', "3: bind[1].host: is missing"),
        ('[[bind]]\nhost = "/"\nhots = 1\n', "3: bind[0].hots: unknown key; did you mean host?"),
        ('[[bind]]\nhost = "/"\nhas = 1\n', "3: bind[0].has: unknown key; did you mean when.has?"),
        ('[[bind]]\nhost = "/"\nzzz = 1\n', "3: bind[0].zzz: unknown key"),
        ('bind = [\n{host = "/"},\n{host = "/", level = 9}]\n', "3: bind[1].level: must be at most 3, not 9"),
        ('[[bind]]\nhost = "/"\nwhen.has = ["a",\n 2]\n', "4: bind[0].when.has[1]: must be a text in quotes"),
        ('[[bind]]\nhost = "/"\nwhen = 3\n', "3: bind[0].when: must be a table"),
        ('bind = [ {host = "/", when = {hsa = 1}} ]\n', "1: bind[0].when.hsa: unknown key; did you mean has?"),
        ('\n"a b" = 1\n', '2: "a b": unknown key'),
        ("bnid = 1\n", "1: bnid: unknown key; did you mean bind?"),
    ],
)  # fmt: skip
def test_a_fault_names_file_line_and_key(text: str, message: str) -> None:
    assert faults_of(text) == [f"binds.toml:{message}"]


def test_faults_are_told_in_the_order_of_the_file() -> None:
    text = '[[bind]]\nlevel = 9\nread_only = "perhaps"\nhots = 1\nhost = "/"\n'
    lines = [int(message.split(":")[1]) for message in faults_of(text)]
    assert lines == [2, 3, 4]


def test_one_fault_is_the_first_of_them() -> None:
    file = TableFile("f", "[[bind]]\nhots = 1\nhost = 2\n")
    with pytest.raises(ValidationError) as refusal:
        Table.model_validate(parse(file))
    assert validation_error(file, refusal.value, Table).message == "f:2: bind[0].hots: unknown key; did you mean host?"
    assert validation_error(file, refusal.value).message == "f:2: bind[0].hots: unknown key"


def test_a_text_is_never_repeated_in_an_error() -> None:
    assert "hunter2" not in str(faults_of('[[bind]]\nhost = ["hunter2"]\nread_only = "hunter2"\nx = "hunter2"\n'))


def test_a_key_that_is_not_there_is_on_the_line_of_what_would_hold_it() -> None:
    file = TableFile("f", '\n[[bind]]\n\n[[bind]]\nhost = "/"\n')
    assert line_of(file, ("bind", 1, "guest")) == 4
    assert line_of(file, ("bind", 7, "guest")) == 2
    assert line_of(file, ("other",)) == 1
    assert line_of(file, ()) == 1


def test_a_key_is_written_as_people_write_it() -> None:
    assert dotted(("bind", 3, "host")) == "bind[3].host"
    assert dotted(("environment", "A B")) == 'environment."A B"'
    assert dotted(("environment", "")) == 'environment.""'
    assert dotted(()) == ""
