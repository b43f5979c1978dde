/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Listings of folders that have mount points which the host's folder lacks.
 */
#ifndef DD_TRACER_LISTING_H
#define DD_TRACER_LISTING_H

#include <stdbool.h>

struct call;
struct tracer;

/* Whether any bind's mount point is missing where it would be made, so that listings are to be traced. */
bool listing_is_needed(const struct tracer *tracer);

/* getdents and getdents64. */
void listing_enter(struct call *call);

#endif
