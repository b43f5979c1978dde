/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The first line of a script, as the kernel reads it (fs/binfmt_script.c).
 */
#ifndef DD_TRACER_SHEBANG_H
#define DD_TRACER_SHEBANG_H

#include <stdbool.h>

#define SHEBANG_SIZE 256 /* BINPRM_BUF_SIZE, linux/binfmts.h */
#define SHEBANG_DEPTH 5  /* scripts in a row, exec_binprm (fs/exec.c) */

struct shebang {
    char interpreter[SHEBANG_SIZE];
    char argument[SHEBANG_SIZE];
    bool has_argument;
};

/* head: the first SHEBANG_SIZE bytes of the file, zeroes behind its end. 1: a script; 0: it does not begin with "#!";
 * -ENOEXEC: it does, but names no interpreter or a truncated one. */
int shebang_parse(const char head[SHEBANG_SIZE], struct shebang *shebang);

#endif
