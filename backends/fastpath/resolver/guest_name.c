/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Host path -> guest path: what getcwd, a link in procfs or a socket's name says to a guest.
 *
 * Rules of this file
 *  - A name counts only if it leads back to the same host path; one that another mount covers does not.
 *  - Longest host prefix first, of equal ones the shortest guest path: which of its names a process used to get to a
 *    directory is not known.
 */
#include "view.h"

#include <errno.h>
#include <string.h>

/* The deepest mount on a guest path, from the one given on. */
static int deepest_mount(const struct dd_view *view, const char *guest, size_t length, int mount) {
    size_t at = view->binds[mount].guest_length;

    while (at < length) {
        const char *slash = memchr(guest + at + 1, '/', length - at - 1);
        int found;

        at = slash != NULL ? (size_t)(slash - guest) : length;
        found = dd_view_mount_at(view, guest, at);
        if (found >= 0)
            mount = found;
    }
    return mount;
}

static bool leads_to(const struct dd_bind *bind, const char *guest, size_t guest_length, const char *host,
                     size_t length) {
    size_t rest = guest_length - bind->guest_length;

    return bind->host_length + rest == length && memcmp(host, bind->host, bind->host_length) == 0 &&
           memcmp(host + bind->host_length, guest + bind->guest_length, rest) == 0;
}

/* The name that one bind gives. */
static int named_by(const struct dd_view *view, int number, const char *host, size_t length, char *guest, int *mount) {
    const struct dd_bind *bind = &view->binds[number];
    size_t rest = length - bind->host_length, guest_length = bind->guest_length + rest;

    if (guest_length >= DD_PATH_BUFFER)
        return -ENAMETOOLONG;
    memcpy(guest, bind->guest, bind->guest_length);
    memcpy(guest + bind->guest_length, host + bind->host_length, rest);
    guest[guest_length] = '\0';
    *mount = deepest_mount(view, guest, guest_length, number);
    return leads_to(&view->binds[*mount], guest, guest_length, host, length) ? (int)guest_length : -1;
}

int dd_view_locate(const struct dd_view *view, const char *host, size_t length, char *guest, int *mount) {
    size_t at;

    while (length > 0 && host[length - 1] == '/')
        length--;
    for (at = length;; at--) {
        if (at == length || host[at] == '/') {
            int number = dd_view_bound_host(view, host, at);

            for (; number >= 0; number = view->same_host[number] - 1) {
                int named = named_by(view, number, host, length, guest, mount);

                if (named != -1)
                    return named;
            }
        }
        if (at == 0)
            break;
    }
    *mount = -1;
    guest[0] = '\0';
    return -1;
}

int dd_guest_name(const struct dd_view *view, const char *host, size_t length, char guest[DD_PATH_BUFFER]) {
    int mount;
    int named = dd_view_locate(view, host, length, guest, &mount);

    return named >= 0 ? named : -1;
}
