/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which emulated ids a new thread begins with.
 */
#ifndef DD_TRACER_INHERITED_IDS_H
#define DD_TRACER_INHERITED_IDS_H

#include <stdbool.h>
#include <sys/types.h>

struct tracee;

/* At a thread's first stop: it has its ids; or false, and it must wait for its maker's fork event. */
bool inherited_ids_find(struct tracee *child);

/* At the fork event. */
void inherited_ids_hand_on(struct tracee *maker, pid_t child_tid);

#endif
