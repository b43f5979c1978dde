# SPDX-License-Identifier: GPL-3.0-or-later
"""Wine under the tracer: it makes the prefix that it makes without, file by file, and Windows programs start.

The guest is the newest Debian, whose wine runs 32-bit Windows programs in 64-bit processes (WoW64): a process of 32
bits cannot be traced. About two gigabytes, once per cache.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from program_guests import made_guest, run_script

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine

pytestmark = [pytest.mark.real, pytest.mark.long, pytest.mark.timeout(2400)]
PACKAGES = ("procps", "python3", "wine", "wine64")
# What no two prefixes have in common, in the text of the registry: when each key was written, three values, the numbers
# that devices get as they are found, and the order in which two processes wrote.
CLEAN = r"""
sed -i -e '/^#time=/d' -e 's/^\(\[.*\]\) [0-9]*$/\1/' \
    -e 's/^\("MachineGuid"\|"VideoID"\|"DriverDateData"\)=.*/\1/' prefix/*.reg
for registry in prefix/*.reg; do
    awk '/^\[/ { key = $0 } { print key, $0 }' $registry |
        grep -vE '^.System..ControlSet001..(Enum|Control..(Class|DeviceClasses|Video))' | sort -o $registry
done
rm prefix/.update-timestamp prefix/wineserver
"""
SERVER = "wineserver=$(ls /usr/lib/*/wine/wineserver)\n"
# Its wine 10 ends by "free(): invalid pointer" where TMPDIR is set, without the tracer as well.
BOOT = "unset TMPDIR\nexport WINEPREFIX=/mnt/prefix WINEDEBUG=-all\n" + SERVER + 'wineboot -i\n"$wineserver" -w\n'
PROGRAMS = r"""
{
    wine cmd /c echo hello
    wine hostname
    wine 'C:\windows\syswow64\cmd.exe' /c 'echo of 32 bits & ver & cd'
    wine 'C:\windows\syswow64\reg.exe' query 'HKCU\Environment'
    wine reg add 'HKCU\Software\Test' /v name /d value /f
    wine reg query 'HKCU\Software\Test'
    wine cmd /c 'cd /d C:\windows & dir /b *.exe & mkdir C:\made & echo text>C:\made\file & type C:\made\file'
    wine cmd /c 'copy C:\made\file C:\made\FILE2 & ren C:\made\file2 file3 & dir /b C:\made & del C:\made\file3'
    wine cmd /c 'exit 7' || echo "status $?"
    wine start /wait /b 'C:\windows\syswow64\cmd.exe' /c 'exit 3' || echo "status $?"
    "$wineserver" -w
} | tr -d '\r'
"""


@pytest.fixture(scope="module")
def wine(test_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_guest(test_cache, tmp_path_factory.mktemp("wine"), "wine", suite="sid", packages=PACKAGES)


def test_a_new_prefix_is_the_one_that_is_made_without_the_tracer(cli: CommandLine, wine: Path, tmp_path: Path) -> None:
    truth, ours = (
        run_script(cli, wine, backend, BOOT + CLEAN, tmp_path / "folder") for backend in ("chroot", "fastpath")
    )
    assert truth.status == 0, truth
    assert len(truth.left) > 1700
    assert sum(line.startswith("prefix/drive_c/windows/syswow64/") for line in truth.left) > 500
    assert ours == truth


def test_windows_programs_print_what_they_print_without_the_tracer(
    cli: CommandLine, wine: Path, tmp_path: Path
) -> None:
    truth, ours = (
        run_script(cli, wine, backend, BOOT + PROGRAMS + CLEAN, tmp_path / "folder")
        for backend in ("chroot", "fastpath")
    )
    assert truth.status == 0, truth
    assert {"hello", "of 32 bits", "text"} <= {line.strip() for line in truth.lines}
    assert [line for line in truth.lines if re.match("status", line)] == ["status 7", "status 3"]
    assert ours == truth
