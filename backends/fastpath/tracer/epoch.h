/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The session's epoch page (abi.h): what the in-process library remembers of names is good as long as the counter
 * stands.
 */
#ifndef DD_TRACER_EPOCH_H
#define DD_TRACER_EPOCH_H

#include <stdbool.h>

struct call;
struct dd_result;
struct path_call;

/* Map the page from its file, whose descriptor is closed. 0 or -errno. */
int epoch_open(int descriptor);

/* Whether the call may change where names lead. */
bool epoch_concerns(const struct path_call *row, const struct dd_result *result);

void epoch_bump_around(struct call *call); /* now, and at the exit stop */

#endif
