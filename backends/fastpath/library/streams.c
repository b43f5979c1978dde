/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * fopen: libc opens by itself, so it is given a descriptor.
 *
 * Rules of this file
 *  - Modes made of r, w, a, +, b, e, x and t alone; libc's own fopen answers the others (mmap, no cancellation,
 *    character sets).
 */
#include "library.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>

/* libc's own fopen, under the name by which it is known to old programs. */
extern FILE *_IO_fopen(const char *path, const char *mode);

/* open(2)'s flags; -1: a mode that is not known here. */
static int flags_of(const char *mode) {
    int flags;

    switch (*mode) {
    case 'r':
        flags = O_RDONLY;
        break;
    case 'w':
        flags = O_WRONLY | O_CREAT | O_TRUNC;
        break;
    case 'a':
        flags = O_WRONLY | O_CREAT | O_APPEND;
        break;
    default:
        return -1;
    }
    for (mode++; *mode != '\0'; mode++) {
        if (*mode == '+')
            flags = (flags & ~O_ACCMODE) | O_RDWR;
        else if (*mode == 'e')
            flags |= O_CLOEXEC;
        else if (*mode == 'x')
            flags |= O_EXCL;
        else if (*mode != 'b' && *mode != 't')
            return -1;
    }
    return flags;
}

static FILE *open_stream(const char *path, const char *mode) {
    int flags = fast_is_on() ? flags_of(mode) : -1;

    if (flags < 0)
        return _IO_fopen(path, mode);
    long descriptor = fast_open(AT_FDCWD, path, flags, 0666);
    if (descriptor < 0) {
        failed(descriptor);
        return NULL;
    }
    FILE *stream = fdopen((int)descriptor, mode);
    if (stream == NULL)
        page_call(SYS_close, descriptor, 0, 0, 0, 0);
    return stream;
}

EXPORT FILE *fopen(const char *restrict path, const char *restrict mode) {
    return open_stream(path, mode);
}

ALIAS(fopen) FILE *fopen64(const char *restrict path, const char *restrict mode);
