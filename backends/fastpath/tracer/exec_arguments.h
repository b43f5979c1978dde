/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The argument vector of execve: what a script makes of it, and whether the kernel would take it.
 */
#ifndef DD_TRACER_EXEC_ARGUMENTS_H
#define DD_TRACER_EXEC_ARGUMENTS_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "call.h"
#include "shebang.h"

/* What comes in front of the caller's own arguments, in place of the first of them: for each script, the innermost
 * last, interpreter and argument, then the script's name. */
struct exec_head {
    struct shebang scripts[SHEBANG_DEPTH + 1]; /* in the order they were met */
    size_t count;
    char execfn[PATH_MAX + 32]; /* "/dev/fd/N/" may come before a path */
};

/* Would the kernel copy these vectors? 0, -EFAULT or -E2BIG: what execve answers before it looks at the file's format.
 */
int exec_arguments_check(const struct call *call, uint64_t argv, uint64_t environment);

/* Puts `path`, the strings of `head` and a vector of both them and the caller's argv (but its first) into scratch
 * memory and makes them the first two arguments of the call. 0, -EFAULT, -E2BIG (the vector does not fit into scratch
 * memory). */
int exec_arguments_replace(struct call *call, const char *path, const struct exec_head *head, uint64_t argv);

#endif
