/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Under which text a guest bound a Unix socket: getsockname and getpeername say that text, not where it leads.
 *
 * Rules of this file
 *  - A table of fixed size, by hash; what falls out is answered by path. A name that is bound again takes its place.
 */
#include "socket_names.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { NAMES = 1024 };

struct name {
    char kernel_name[SOCKET_NAME_SIZE + 1];
    char given[SOCKET_NAME_SIZE + 1];
};

static struct name names[NAMES];

static struct name *place_of(const char *kernel_name) {
    uint32_t hash = 2166136261U; /* FNV-1a */

    for (const char *byte = kernel_name; *byte != '\0'; byte++)
        hash = (hash ^ (unsigned char)*byte) * 16777619U;
    return &names[hash % NAMES];
}

void socket_names_put(const char *kernel_name, const char *given) {
    struct name *place = place_of(kernel_name);

    snprintf(place->kernel_name, sizeof(place->kernel_name), "%s", kernel_name);
    snprintf(place->given, sizeof(place->given), "%s", given);
}

const char *socket_names_find(const char *kernel_name) {
    const struct name *place = place_of(kernel_name);

    return strcmp(place->kernel_name, kernel_name) == 0 ? place->given : NULL;
}
