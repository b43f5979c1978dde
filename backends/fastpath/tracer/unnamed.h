/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Paths from a directory that the kernel cannot name: it lies deeper than PATH_MAX.
 */
#ifndef DD_TRACER_UNNAMED_H
#define DD_TRACER_UNNAMED_H

#include "resolver/resolver.h"

struct call;

/* As dd_resolve. `directory`: what procfs calls it, "/proc/TID/cwd". */
int unnamed_resolve(const struct call *call, const char *directory, const char *path, enum dd_mode mode,
                    struct dd_result *result);

#endif
