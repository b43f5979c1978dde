/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Paths from a directory that the kernel cannot name: it lies deeper than PATH_MAX, or it is removed.
 */
#ifndef DD_TRACER_UNNAMED_H
#define DD_TRACER_UNNAMED_H

#include "resolver/resolver.h"

struct call;

/* Whether what procfs says of one of its links (`link`) is the name of something that is no more. */
bool unnamed_is_removed(const char *link, const char *host, size_t length);

/* Makes the name of a removed directory one that nothing has, without what is above it: there is nothing in it. */
bool unnamed_avoid_namesakes(char *host, size_t length, size_t size);

/* Whether ".." is in the path: then names will not do. */
bool unnamed_leads_up(const char *path);

/* As dd_resolve. `directory`: what procfs calls it, "/proc/TID/cwd". */
int unnamed_resolve(const struct call *call, const char *directory, const char *path, enum dd_mode mode,
                    struct dd_result *result);

#endif
