# SPDX-License-Identifier: GPL-3.0-or-later
"""The fast path's wiring, and with it a plan's second form: the one that names a real session folder.

The key covers the rootfs and every bind, so a library that finds it in its environment and at the tracer knows that
both see the same tree (spec: launcher, 2.1). What its library cannot hold turns it off; the session runs all the same.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from droiddeck_session.plan.model import OWN_ORIGIN, SESSION, FastPath, Variable
from droiddeck_session.settings import FAST_PATH_VARIABLES, SESSION_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from droiddeck_session.plan.capabilities import Capabilities
    from droiddeck_session.plan.model import Bind, Identity, Plan

MOST_BINDS: Final = 256
LONGEST_PATH: Final = 1023
# linux/binfmts.h: MAX_ARG_STRLEN, which NAME=VALUE and its NUL must fit.
LONGEST_VARIABLE: Final = 131072
KEY_DIGITS: Final = 24
# The fast path's library idles under a tracer that has it (spec: launcher, 2.2).
NO_SECCOMP: Final = "PROOT_NO_SECCOMP"
_ORIGIN: Final = f"{OWN_ORIGIN} fast path"


def fast_path(
    *, enabled: bool, capabilities: Capabilities, identity: Identity, root: str, binds: Sequence[Bind]
) -> FastPath:  # fmt: skip
    """Return whether a session has the fast path, and if not, why.

    Args:
        enabled: the setting fast_path.enabled.
        capabilities: whether the backend lets it through.
        identity: the ids inside; emulated ones need the tracer's answer to every call.
        root: host path of the rootfs.
        binds: the plan's.
    """
    why_off = ""
    if not enabled:
        why_off = "fast_path.enabled is false"
    elif NO_SECCOMP in dict(capabilities.host_environment):
        why_off = f"the tracer runs with {NO_SECCOMP}, which stops every call"
    elif not capabilities.fast_path:
        why_off = f"backend {capabilities.backend} does not offer it"
    elif identity.emulated:
        why_off = "the ids inside are emulated, so the tracer must answer every call"
    else:
        why_off = beyond_limits(root, binds)
    return FastPath(enabled=not why_off, why_off=why_off)


def beyond_limits(root: str, binds: Sequence[Bind]) -> str:
    """Return what of these binds the fast path's library cannot hold; empty if it can hold all."""
    if "|" in root:
        return f"the rootfs has a | in its path: {root!r}"
    if len(binds) > MOST_BINDS:
        return f"{len(binds)} binds are more than {MOST_BINDS}"
    for bind in binds:
        for path in (bind.host, bind.guest):
            if "|" in path or ":" in path:
                return f"a bind has a {'|' if '|' in path else 'colon'} in its path: {path!r}"
            if len(_bytes(path)) > LONGEST_PATH:
                return f"the path of a bind is longer than {LONGEST_PATH} bytes: {path[:40]!r}..."
    listed = "|".join(bind.host + ":" + bind.guest for bind in binds)
    if len(_bytes(listed)) + len("PROOT_FP_BINDS=") >= LONGEST_VARIABLE:
        return "the binds are longer than one variable can be"
    return ""


def key_of(root: str, specs: Sequence[str]) -> str:
    """Return the key of a rootfs with these binds: 24 hexadecimal digits."""
    return hashlib.sha256(_bytes("\n".join((root, *specs)))).hexdigest()[:KEY_DIGITS]


def placeholders(path: FastPath) -> tuple[Variable, ...]:
    """Return the variables that `bound` fills in: none of the fast path's if it is off."""
    names = (*FAST_PATH_VARIABLES, SESSION_VARIABLE) if path.enabled else (SESSION_VARIABLE,)
    return tuple(
        Variable(name=name, value=SESSION, origin=_ORIGIN, reason="the fast path's library checks it")
        if name in FAST_PATH_VARIABLES
        else Variable(name=name, value=SESSION, origin=f"{OWN_ORIGIN} session", reason="marks the session's processes")
        for name in names
    )


def bound(plan: Plan, folder: str, token: str) -> Plan:
    """Return the concrete form of a symbolic plan: with its session folder, its token and the fast path's key.

    Args:
        plan: a symbolic plan.
        folder: absolute host path of the session folder.
        token: marks the session's processes; a secret of this run.
    """
    binds = tuple(bind.model_copy(update={"host": _in_folder(bind.host, folder)}) for bind in plan.binds)
    concrete = plan.model_copy(update={"binds": binds, "session": folder})
    wired = plan.fast_path
    # With the folder's real name a limit may be passed that the placeholder kept.
    if wired.enabled and (why_off := beyond_limits(plan.guest.root, binds)):
        wired = FastPath(enabled=False, why_off=why_off)
    values = {SESSION_VARIABLE: token}
    if wired.enabled:
        specs = concrete.bind_specs()
        wired = FastPath(enabled=True, key=key_of(plan.guest.root, specs))
        values |= {"PROOT_FP_ROOT": plan.guest.root, "PROOT_FP_BINDS": "|".join(specs), "PROOT_FP_KEY": wired.key or ""}
    environment = tuple(
        variable.model_copy(update={"value": values[variable.name]}) if variable.name in values else variable
        for variable in plan.environment
        if wired.enabled or variable.name not in FAST_PATH_VARIABLES
    )
    return concrete.model_copy(update={"environment": environment, "fast_path": wired})


def _in_folder(host: str, folder: str) -> str:
    return folder + host.removeprefix(SESSION) if host.startswith(f"{SESSION}/") else host


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
