# SPDX-License-Identifier: GPL-3.0-or-later
"""What a session can put into its own folder for the guest to see: texts, empty folders and guest programs.

Only what a bind shows is staged. Nothing of it is written into the rootfs, so two sessions on one guest do not meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from droiddeck_session.plan.model import SESSION, StagedFile
from droiddeck_session.plan.proc_texts import PROC_NAMES, proc_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from droiddeck_session.facts import Facts
    from droiddeck_session.plan.model import Bind, Identity

# Folders by mode: run/ is XDG_RUNTIME_DIR, tmp/ and shm/ are for every uid of the guest.
_OF_THE_GUEST: Final = {"run": 0o700, "tmp": 0o1777, "shm": 0o1777}
_FOLDERS: Final = {**_OF_THE_GUEST, "debug": 0o700, "empty": 0o755, "programs": 0o755}
# The tracer's own (PROOT_TMP_DIR); no bind shows it.
TRACER: Final = StagedFile(path="tracer", mode=0o700)
# What goes with the session. debug/ stays with its record: programs of the guest leave there what explains their end.
LEAVINGS: Final = (*_OF_THE_GUEST, TRACER.path)
# Programs of the guest add to it only if it is there.
_INNER_LOG: Final = StagedFile(path="debug/inner.log", content="")
_TEXTS: Final = ("etc/resolv.conf", "etc/hosts", "etc/ld.so.preload", "etc/passwd", "etc/group")

# All that rows may name below @session@.
SESSION_ENTRIES: Final = frozenset({*_FOLDERS, *_TEXTS, *(f"proc/{name}" for name in PROC_NAMES)})

# What an Android host cannot tell; on Linux a host without a resolv.conf leaves the guest its own.
_FALLBACK_RESOLVER: Final = (
    "nameserver 8.8.8.8\nnameserver 1.1.1.1\nnameserver 2001:4860:4860::8888\noptions timeout:2 attempts:2\n"
)
_LOCALHOST: Final = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"


def entries(
    facts: Facts, identity: Identity, *, nodename: str | None, programs: Sequence[StagedFile]
) -> dict[str, tuple[StagedFile, ...]]:
    """Return what this session can stage, by the path that a row of binds.toml names below `@session@`.

    Args:
        facts: the machine and the guest.
        identity: the ids inside; passwd and group are staged only for one that the guest's own files do not know.
        nodename: the guest's host name, which its hosts file shall know.
        programs: what is staged below programs/; the folder is offered only if there is any.
    """
    texts = {
        "etc/ld.so.preload": "",
        "etc/hosts": _hosts(facts.hosts or "", nodename),
        "etc/resolv.conf": facts.resolver if facts.resolver is not None or not facts.android else _FALLBACK_RESOLVER,
        "etc/passwd": _passwd(facts, identity),
        "etc/group": _group(facts, identity),
        **{f"proc/{name}": text for name, text in proc_texts(facts.uname).items()},
    }
    found: dict[str, tuple[StagedFile, ...]]
    found = {path: (StagedFile(path=path, mode=mode),) for path, mode in _FOLDERS.items() if path != "programs"}
    found["debug"] = (*found["debug"], _INNER_LOG)
    found |= {path: (StagedFile(path=path, content=text),) for path, text in texts.items() if text is not None}
    if programs:
        found["programs"] = (StagedFile(path="programs", mode=_FOLDERS["programs"]), *programs)
    return found


def staged(
    binds: Iterable[Bind], offered: dict[str, tuple[StagedFile, ...]], extra: Sequence[StagedFile]
) -> tuple[StagedFile, ...]:
    """Return what must be staged for these binds: parents before what lies in them, each path once.

    Args:
        binds: the plan's.
        offered: what the session can stage.
        extra: mount points inside folders of the session.
    """
    shown = (bind.host.removeprefix(f"{SESSION}/") for bind in binds if bind.host.startswith(f"{SESSION}/"))
    wanted = {TRACER.path: TRACER}
    wanted |= {file.path: file for path in shown for file in offered.get(path, ())}
    wanted |= {file.path: file for file in extra if file.path not in wanted}
    for path in list(wanted):
        for parent in _parents(path):
            wanted.setdefault(parent, StagedFile(path=parent, mode=0o755))
    return tuple(wanted[path] for path in sorted(wanted, key=lambda path: path.split("/")))


def _parents(path: str) -> Iterable[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _hosts(text: str, nodename: str | None) -> str:
    """Return the host's file, with the guest's own name and localhost in it."""
    fields = [line.partition("#")[0].split()[1:] for line in text.splitlines()]
    known = {name for names in fields for name in names}
    text = text if text.endswith("\n") or not text else f"{text}\n"
    if "localhost" not in known:
        text = _LOCALHOST + text
    # 127.0.1.1 as Debian has it: a name of the machine itself that is not localhost.
    return text if nodename is None or nodename in known else f"{text}127.0.1.1\t{nodename}\n"


def _passwd(facts: Facts, identity: Identity) -> str | None:
    """Return the guest's passwd, led by a line for an unknown uid: `root` by name, so that chown to it works."""
    guest = facts.guest
    if guest is None or identity.uid in guest.users:
        return None
    shell = "/bin/bash" if guest.paths["/bin/bash"].executable else "/bin/sh"
    return f"root:x:{identity.uid}:{identity.gid}:root:/root:{shell}\n{guest.passwd}"


def _group(facts: Facts, identity: Identity) -> str | None:
    guest = facts.guest
    if guest is None or identity.gid in guest.groups:
        return None
    return f"root:x:{identity.gid}:\n{guest.group}"
