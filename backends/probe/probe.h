/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the two files of the confinement probe share.
 */
#ifndef DROIDDECK_PROBE_H
#define DROIDDECK_PROBE_H

#include <stdbool.h>
#include <sys/types.h>

/* A place whose calls are judged. `name` stands beside `name.link` (a symbolic link) and `name.program` (this program). */
struct place {
    const char *name;
    bool of_the_guest; /* else: it exists on the host alone */
    dev_t device;      /* the identity that the guest shall see; a place of the host has none */
    ino_t inode;
};

/* Print the member "calls" of the answer: each call's name with "ok", "escape" or the name of the error that refused it. */
void print_calls(const struct place *places, size_t count);

#endif
