/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Paths from a directory that the kernel cannot name. Downwards the resolver goes through procfs, without a name.
 * Upwards there are names again some time, and with them binds and the guest's root: so ".." is walked here, with
 * descriptors.
 *
 * Rules of this file
 *  - A removed directory has no name either: procfs says the one that it had, and something else may be called so now.
 *  - A directory without a name is no mount point and no root, since those have names: the kernel's ".." is the guest's
 *    too.
 *  - A link there that itself leads upwards is -ENAMETOOLONG: where it leads, nobody could tell.
 */
#define _GNU_SOURCE
#include "unnamed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "call.h"
#include "host_path.h"
#include "tracer.h"

static const char suffix[] = " (deleted)"; /* fs/d_path.c */

bool unnamed_is_removed(const char *link, const char *host, size_t length) {
    struct stat there, status;

    if (length < strlen(suffix) || strcmp(host + length - strlen(suffix), suffix) != 0)
        return false;
    return lstat(host, &there) != 0 || stat(link, &status) != 0 || status.st_dev != there.st_dev ||
           status.st_ino != there.st_ino;
}

bool unnamed_avoid_namesakes(char *host, size_t length, size_t size) {
    struct stat there;

    for (; lstat(host, &there) == 0; length += strlen(suffix)) {
        if (length + sizeof(suffix) > size)
            return false;
        memcpy(host + length, suffix, sizeof(suffix));
    }
    return true;
}

enum { FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC };

static bool is_up(const char *component) {
    return component[0] == '.' && component[1] == '.' && (component[2] == '/' || component[2] == '\0');
}

static const char *next_component(const char *path) {
    path += strcspn(path, "/");
    path += strspn(path, "/");
    while (path[0] == '.' && (path[1] == '/' || path[1] == '\0'))
        path += 1 + strspn(path + 1, "/");
    return path;
}

static const char *first_up(const char *path) {
    while (*path != '\0' && !is_up(path))
        path = next_component(path);
    return *path != '\0' ? path : NULL;
}

bool unnamed_leads_up(const char *path) {
    return first_up(path) != NULL;
}

static int resolve_downwards(const struct call *call, const char *directory, const char *path, enum dd_mode mode,
                             struct dd_result *result) {
    struct dd_process process = call_process(call);

    int error = dd_resolve(&call->tracer->view, &process, directory, path, mode, result);
    return error == 0 && result->up ? -ENAMETOOLONG : error;
}

/* The directory that `path`, up to `end`, leads to. Descriptor or -errno. */
static int open_downwards(const struct call *call, const char *directory, const char *path, const char *end,
                          struct dd_result *result) {
    char head[PATH_MAX];
    const char *name = directory;
    int at = AT_FDCWD;

    if (end > path) {
        memcpy(head, path, (size_t)(end - path));
        head[end - path] = '\0';
        int error = resolve_downwards(call, directory, head, DD_FOLLOW, result);
        if (error == 0)
            error = host_path_open(result->host, &at, &name);
        if (error != 0)
            return error;
    }
    int descriptor = openat(at, name, FLAGS);
    if (descriptor < 0)
        descriptor = -errno;
    host_path_close(at);
    return descriptor;
}

/* Go up as long as *path says so, but no further than to a directory that has a name: then its length, else 0; or
 * -errno. */
static int climb(int *descriptor, const char **path, char name[PATH_MAX]) {
    char link[64];

    while (is_up(*path)) {
        int above = openat(*descriptor, "..", FLAGS);
        if (above < 0)
            return -errno;
        close(*descriptor);
        *descriptor = above;
        *path = next_component(*path);
        snprintf(link, sizeof(link), "/proc/self/fd/%d", above);
        ssize_t length = readlink(link, name, PATH_MAX - 1);
        if (length > 0)
            name[length] = '\0';
        if (length > 0 && !unnamed_is_removed(link, name, (size_t)length))
            return (int)length;
    }
    return 0;
}

int unnamed_resolve(const struct call *call, const char *directory, const char *path, enum dd_mode mode,
                    struct dd_result *result) {
    const char *up = first_up(path);
    char name[PATH_MAX];

    if (up == NULL)
        return resolve_downwards(call, directory, path, mode, result);
    int descriptor = open_downwards(call, directory, path, up, result);
    if (descriptor < 0)
        return descriptor;
    int length = climb(&descriptor, &up, name);
    const char *rest = *up != '\0' ? up : ".";
    int error = length < 0 ? length : 0;
    if (length > 0) {
        struct dd_process process = call_process(call);
        error = dd_resolve(&call->tracer->view, &process, name, rest, mode, result);
    } else if (error == 0 && tracee_keep(call->tracee, descriptor)) {
        snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)getpid(), descriptor);
        descriptor = -1;
        error = unnamed_resolve(call, name, rest, mode, result);
    } else if (error == 0) {
        error = -ENAMETOOLONG;
    }
    if (descriptor >= 0)
        close(descriptor);
    if (error == 0)
        result->changed = true;
    return error;
}
