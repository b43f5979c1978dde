/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the loader will be told: struct dd_info, made at the entry of execve and written at its event.
 */
#ifndef DD_TRACER_EXEC_INFO_H
#define DD_TRACER_EXEC_INFO_H

#include "abi.h"
#include "exec_file.h"
#include "tracer.h"

struct pending_exec {
    int kept[2]; /* descriptors that the loader opens files through: the tracer's, -1: none */
    size_t used; /* bytes of info.pool */
    struct dd_info info;
};

/* A record of this program; takes over what has to be kept of its files. NULL: no memory, or names that do not fit. */
struct pending_exec *exec_info_make(const struct tracer *tracer, struct exec_file *program,
                                    struct exec_file *interpreter, const char *execfn, const char *comm);

/* Writes it into the memory of the new image: 0 or -errno. */
int exec_info_write(const struct pending_exec *pending, pid_t tid);

void exec_info_free(struct pending_exec *pending);

#endif
