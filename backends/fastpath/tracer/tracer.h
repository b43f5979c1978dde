/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What one run of the tracer knows: its view of the guest, its options, and the main program.
 */
#ifndef DD_TRACER_TRACER_H
#define DD_TRACER_TRACER_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "abi.h"
#include "options.h"
#include "resolver/dir_cache.h"
#include "resolver/resolver.h"

struct tracer {
    struct dd_view view;
    struct dd_dir_cache cache;
    struct options options;
    char loader[PATH_MAX];     /* host path of the loader, canonical */
    char root[PATH_MAX];       /* host path of the guest's root, canonical */
    char folder[PATH_MAX];     /* this run's own, for glue and generated files (binds.c); "": none was needed */
    char epoch_path[PATH_MAX]; /* host path of the file behind the epoch page; "": the fast path is off */
    char key[DD_KEY_SIZE];     /* of the fast path; "": it is off */
    pid_t main_pid;            /* the main program */
    bool loaded;               /* its first exec has succeeded: every tracee has the loader from now on */
};

#endif
