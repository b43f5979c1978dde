/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Processes that put a seccomp filter of their own on.
 */
#ifndef DD_TRACER_OWN_FILTER_H
#define DD_TRACER_OWN_FILTER_H

#include <stdbool.h>
#include <sys/types.h>

struct call;

/* seccomp, and prctl(PR_SET_SECCOMP). */
void own_filter_enter(struct call *call);

bool own_filter_is_on(pid_t tid);

#endif
