/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the resolver's own files ask of a view beyond resolver.h.
 */
#ifndef DD_VIEW_H
#define DD_VIEW_H

#include "resolver.h"

/* Number of the bind with exactly this host path and the shortest guest path, or -1; more of them by
 * view->same_host. */
int dd_view_bound_host(const struct dd_view *view, const char *host, size_t length);

/* As dd_guest_name; says also in which bind the file lies. -1: outside, and *mount is -1. -ENAMETOOLONG likewise. */
int dd_view_locate(const struct dd_view *view, const char *host, size_t length, char *guest, int *mount);

#endif
