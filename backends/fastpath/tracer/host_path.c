/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Host paths of PATH_MAX bytes and more: the name of the root stands in front of what a guest may well ask for.
 */
#define _GNU_SOURCE
#include "host_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "resolver/sys.h"

int host_path_open(const char *host, int *directory, const char **path) {
    *directory = AT_FDCWD;
    *path = host;
    if (strnlen(host, PATH_MAX) < PATH_MAX)
        return 0;
    int descriptor = dd_host_parent(host, path);
    if (descriptor < 0)
        return descriptor;
    *directory = descriptor;
    return 0;
}

void host_path_close(int directory) {
    if (directory != AT_FDCWD)
        close(directory);
}

int host_path_for_caller(const struct call *call, const char *host, char buffer[PATH_MAX], const char **path) {
    int directory;
    const char *rest;

    int error = host_path_open(host, &directory, &rest);
    if (error != 0)
        return error;
    *path = rest;
    if (directory == AT_FDCWD)
        return 0;
    if (!tracee_keep(call->tracee, directory)) {
        close(directory);
        return -ENAMETOOLONG;
    }
    int length = snprintf(buffer, PATH_MAX, "/proc/%d/fd/%d/%s", (int)getpid(), directory, rest);
    *path = buffer;
    return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}
