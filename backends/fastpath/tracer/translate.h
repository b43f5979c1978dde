/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The one handler of all path calls (path_calls.c).
 */
#ifndef DD_TRACER_TRANSLATE_H
#define DD_TRACER_TRANSLATE_H

#include <stdbool.h>
#include <stdint.h>

struct call;
struct path_argument;
struct path_call;

/* The flags that belong to a path; 0: there are none. */
uint64_t path_flags(const struct call *call, const struct path_argument *argument);

/* "..", "./../": no such entry can be made, removed or renamed wherever it leads, which need not have a name any more.
 * */
bool path_leads_nowhere(const char *path);

void translate(struct call *call, const struct path_call *row);

#endif
