/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The walk itself, for whoever remembers parts of it (dir_cache.c).
 */
#ifndef DD_WALK_H
#define DD_WALK_H

#include "resolver.h"

/* Told of each link that is followed: its host path and its text. NULL: nobody. */
struct dd_link_log {
    void (*link)(struct dd_link_log *log, const char *host, size_t host_length, const char *text, size_t text_length);
};

/* Where a walk starts: result's host, name_length, guest, guest_length, mount, outside, links, changed, up and
 * caller_dependent are set. */
void dd_walk_at_root(const struct dd_view *view, struct dd_result *result);
void dd_walk_at_base(const struct dd_view *view, const char *base_host, struct dd_result *result);

/* Goes on from there, with a path that does not begin with a slash unless the start is the root. */
int dd_walk(const struct dd_view *view, const struct dd_process *process, const char *path, enum dd_mode mode,
            struct dd_link_log *log, struct dd_result *result);

#endif
