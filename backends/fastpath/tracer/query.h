/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The calls that only ask the file system: the tracer asks in the caller's place.
 */
#ifndef DD_TRACER_QUERY_H
#define DD_TRACER_QUERY_H

#include <stdbool.h>

struct call;
struct dd_result;

void query_answer(struct call *call, const struct dd_result *result);

/* The same for a call that follows links, on a path whose last component was not looked at: true, or it is a link. */
bool query_answer_unless_link(struct call *call, const struct dd_result *result);

bool query_asks_for_access(const struct call *call);

/* Whether statx would have to tell that this is the root of a mount, which the kernel does not see. */
bool query_shows_mount(const struct call *call, const struct dd_result *result);

/* A stat of a descriptor alone: whether the kernel cannot answer it, and the answer. */
bool query_concerns_descriptor(const struct call *call);
void query_answer_descriptor(struct call *call);

#endif
