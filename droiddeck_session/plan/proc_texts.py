# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts for files of /proc that some hosts (Android) let nobody read: as proc(5) has them, of an idle machine.

They are bound only where the real file cannot be read (spec: launcher, 1.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from droiddeck_session.facts import Uname

_CPUS: Final = 8
# Counters are in USER_HZ, 100 to the second; all are of one day of uptime.
_CPU: Final = "864000 1200 432000 68256000 21600 0 7200 0 0 0"
_CPU_SUM: Final = "6912000 9600 3456000 546048000 172800 0 57600 0 0 0"

_STAT: Final = "".join(
    (
        f"cpu  {_CPU_SUM}\n",
        *(f"cpu{number} {_CPU}\n" for number in range(_CPUS)),
        "intr 259200000\n",
        "ctxt 518400000\n",
        "btime 1735689600\n",
        "processes 120000\n",
        "procs_running 1\n",
        "procs_blocked 0\n",
        "softirq 86400000 0 28800000 1000 3600000 900000 0 1200000 25200000 0 26699000\n",
    )
)

_VMSTAT: Final = "".join(
    f"{name} {value}\n"
    for name, value in (
        ("nr_free_pages", 524288),
        ("nr_zone_inactive_anon", 131072),
        ("nr_zone_active_anon", 262144),
        ("nr_zone_inactive_file", 196608),
        ("nr_zone_active_file", 196608),
        ("nr_mlock", 0),
        ("nr_inactive_anon", 131072),
        ("nr_active_anon", 262144),
        ("nr_inactive_file", 196608),
        ("nr_active_file", 196608),
        ("nr_anon_pages", 393216),
        ("nr_mapped", 131072),
        ("nr_file_pages", 393216),
        ("nr_dirty", 64),
        ("nr_writeback", 0),
        ("nr_shmem", 4096),
        ("pgpgin", 8388608),
        ("pgpgout", 4194304),
        ("pswpin", 0),
        ("pswpout", 0),
        ("pgfault", 120000000),
        ("pgmajfault", 24000),
        ("oom_kill", 0),
    )
)

_CONSTANT: Final = {
    # Empty: libpci ends the process when the folder lists but this file does not open.
    "pci_devices": "",
    "file-max": "9223372036854775807\n",
    "stat": _STAT,
    "loadavg": "0.12 0.10 0.08 1/480 12345\n",
    "uptime": "86400.00 682560.00\n",
    "vmstat": _VMSTAT,
    # linux/capability.h: CAP_CHECKPOINT_RESTORE
    "cap_last_cap": "40\n",
    "overflowuid": "65534\n",
    "overflowgid": "65534\n",
}
PROC_NAMES: Final = frozenset({*_CONSTANT, "version"})


def proc_texts(uname: Uname) -> dict[str, str]:
    """Return the texts by name; `version` says what uname(2) says."""
    return {**_CONSTANT, "version": f"{uname.sysname} version {uname.release} (build@host) (gcc) {uname.version}\n"}
