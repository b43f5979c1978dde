/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The resolver's questions as plain system calls: for the tracer and for tests. The library brings its own.
 *
 * Rules of this file
 *  - A path of PATH_MAX bytes and more is walked by directory descriptors, in pieces that end before a slash.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_PATH, memrchr */
#endif
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h> /* PATH_MAX */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where a piece that the kernel takes ends: the last slash before PATH_MAX, or NULL if one name is longer. */
static const char *piece_end(const char *path) {
    return memrchr(path, '/', PATH_MAX - 1);
}

int dd_host_parent(const char *path, const char **rest) {
    int directory = AT_FDCWD;

    while (strnlen(path, PATH_MAX) == PATH_MAX) {
        char piece[PATH_MAX];
        const char *end = piece_end(path);
        int next;

        if (end == NULL || end == path) {
            next = -1;
            errno = ENAMETOOLONG;
        } else {
            memcpy(piece, path, (size_t)(end - path));
            piece[end - path] = '\0';
            next = openat(directory, piece, O_PATH | O_DIRECTORY | O_CLOEXEC);
        }
        if (directory != AT_FDCWD) {
            int error = errno;

            close(directory);
            errno = error;
        }
        if (next < 0)
            return -errno;
        directory = next;
        for (path = end; *path == '/'; path++)
            ;
    }
    *rest = path;
    return directory;
}

/* The descriptor and name for an *at call: AT_FDCWD for most. Slashes after the last name stay with it. */
static int place(const char *path, const char **name) {
    *name = path;
    return strnlen(path, PATH_MAX) < PATH_MAX ? AT_FDCWD : dd_host_parent(path, name);
}

static int finished(int directory, int result) {
    int error = errno;

    if (directory >= 0)
        close(directory);
    return result < 0 ? -error : result;
}

int dd_sys_readlink(const char *path, char *buffer, size_t size) {
    const char *name;
    int directory = place(path, &name);

    if (directory < 0 && directory != AT_FDCWD)
        return directory;
    return finished(directory, (int)readlinkat(directory, name, buffer, size));
}

int dd_sys_mode(const char *path, unsigned *mode) {
    struct stat found;
    const char *name;
    int directory = place(path, &name), result;

    if (directory < 0 && directory != AT_FDCWD)
        return directory;
    result = finished(directory, fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW));
    if (result == 0)
        *mode = found.st_mode;
    return result;
}
