/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Looking at files with the rights of a caller that is not the tracer's user (a tracer that runs as root).
 */
#ifndef DD_TRACER_EXEC_RIGHTS_H
#define DD_TRACER_EXEC_RIGHTS_H

#include <stdbool.h>
#include <sys/types.h>

struct tracee;

#define RIGHTS_GROUPS 1024

struct rights {
    bool borrowed; /* else nothing has changed */
    gid_t groups[RIGHTS_GROUPS];
    int group_count;
    gid_t group;
};

/* From now on files are looked up with the caller's user and groups. `own` remembers the tracer's. */
void rights_borrow(struct tracee *tracee, struct rights *own);

void rights_return(const struct rights *own);

#endif
