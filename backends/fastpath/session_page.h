/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the tracer tells the in-process library of a session: the finished view, so that both resolve alike without the
 * library reading any list of binds, and what it may answer without a call.
 *
 * Rules of this file
 *  - Written once, before the first guest process; mapped for reading at DD_SESSION in each of them.
 *  - The view's pointers are good at that address only.
 *  - Any change of the layout, that of struct dd_view included, raises DD_ABI_VERSION.
 */
#ifndef DD_SESSION_PAGE_H
#define DD_SESSION_PAGE_H

#include "abi.h"
#include "resolver/resolver.h"

struct dd_session {
    uint64_t magic;
    uint32_t abi_version;
    uint32_t has_ids; /* emulated (-i, -0): what belongs to the real ids is shown as the others' */
    uint32_t real_uid, real_gid, uid, gid;
    uint32_t has_identity; /* of the kernel (-k): what uname(2) says */
    char identity[6][65];  /* struct utsname (linux/utsname.h) */
    struct dd_view view;   /* last: its text is mostly unused, and so a hole in the file */
};

_Static_assert(sizeof(struct dd_session) <= DD_SESSION_SIZE, "the session's page");

#endif
