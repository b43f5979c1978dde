/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The guest's view: root and binds of the command line, and the glue that shows mount points which the rootfs lacks.
 */
#ifndef DD_TRACER_BINDS_H
#define DD_TRACER_BINDS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct tracer;

/* Fill tracer->root and tracer->view. Ends the process with one line where a bind cannot be. */
void binds_start(struct tracer *tracer);

/* Whether this guest path is the kernel's own file in /proc, not one that a bind has put there. */
bool binds_from_procfs(const struct tracer *tracer, const char *guest);

/* A new empty file or folder in tracer->folder, which is made at first. */
int binds_make_file(struct tracer *tracer, char path[PATH_MAX]); /* descriptor, or -errno */
int binds_make_folder(struct tracer *tracer, char path[PATH_MAX]);

/* The name in tracer->folder of a file for one thread. 0 or -errno. */
int binds_name_for(struct tracer *tracer, pid_t tid, char path[PATH_MAX]);

/* Remove tracer->folder with all that is in it. */
void binds_end(const struct tracer *tracer);

#endif
