/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The command line, spelled as proot spells what we use of it.
 */
#ifndef DD_TRACER_OPTIONS_H
#define DD_TRACER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "resolver/resolver.h"

#define EXIT_OWN_FAILURE 125 /* as env(1): what the tracer itself could not do; 126 and 127 speak of the main program */

struct requested_bind {
    const char *host;
    const char *guest;
};

struct options {
    const char *root; /* -r; "/" without it */
    const char *cwd;  /* -w; "/" without it */
    struct requested_bind binds[DD_MAX_BINDS];
    size_t bind_count;
    bool has_ids; /* -i, or -0 (which is -i 0:0) */
    uid_t uid;
    gid_t gid;
    const char *kernel_release; /* -k, or NULL */
    bool kill_on_exit;
    char *const *command; /* the main program and its arguments */
};

/* Fill `options`, or end the process: --help and --version with 0, a mistake with EXIT_OWN_FAILURE and one line. */
void options_parse(struct options *options, int argc, char **argv);

#endif
