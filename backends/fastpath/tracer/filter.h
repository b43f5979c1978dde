/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The seccomp filter of all tracees.
 */
#ifndef DD_TRACER_FILTER_H
#define DD_TRACER_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

enum { FILTER_LIMIT = BPF_MAXINSNS }; /* linux/bpf_common.h: what the kernel takes */

struct filter {
    struct sock_filter code[FILTER_LIMIT];
    size_t length;
    bool too_long;
};

struct filter_needs {
    bool ids;       /* emulated ids */
    bool utsname;   /* a kernel identity of its own */
    bool fast_path; /* calls from the page are let through */
    bool listings;  /* of folders, for mount points that they lack */
};

/* Build the program; false if it would be longer than the kernel takes. */
bool filter_build(struct filter *filter, struct filter_needs needs);

/* Put it on the calling process, for good. 0 or -errno. */
int filter_install(const struct filter *filter);

#endif
