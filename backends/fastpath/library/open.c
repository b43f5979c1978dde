/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * open, openat, creat; and what libc opens by itself: opendir, fopen, shm_open.
 *
 * Rules of this file
 *  - openat2(RESOLVE_NO_SYMLINKS) on the host's path: the kernel itself refuses a link anywhere, so whatever was
 *    remembered, no other file than the guest's is opened or made.
 *  - Only descriptors, "exists" and "missing" are final; other errors are the tracer's to tell. EINTR too, for the call
 *    has waited.
 *  - Left to the tracer: O_TMPFILE, flags that openat2 is strict about, programs that may run and are to be written
 *    (ETXTBSY), and texts that the tracer writes itself (/proc/PID/maps).
 */
#include "library.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "place.h"

enum {
    O_LARGE = 0100000, /* O_LARGEFILE of asm-generic/fcntl.h and x86-64: libc's own is 0 */
    USUAL = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_DSYNC | O_SYNC | O_DIRECTORY |
            O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_PATH | O_DIRECT | O_LARGE,
    WITH_PATH = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_PATH, /* O_PATH_FLAGS, linux/fcntl.h */
};

static bool is_maps(const struct place *place) {
    const char *name = place->name;
    size_t length = place->name_length;

    return (length == 4 && memcmp(name, "maps", 4) == 0) || (length == 5 && memcmp(name, "smaps", 5) == 0) ||
           (length == 9 && memcmp(name, "numa_maps", 9) == 0);
}

/* A regular file that somebody may execute: the tracer knows whether somebody does. */
static bool may_run(const struct place *place) {
    struct stat status;
    long error = page_call(SYS_newfstatat, place->directory, (long)place->path, (long)&status, AT_SYMLINK_NOFOLLOW, 0);

    return error == 0 && S_ISREG(status.st_mode) && (status.st_mode & 0111) != 0;
}

static bool writes(int flags) {
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
}

static inline long open_place(const struct place *place, int flags, unsigned mode) {
    struct open_how how = {
        .flags = (unsigned)flags,
        .mode = (flags & O_CREAT) != 0 ? mode & 07777 : 0,
        .resolve = RESOLVE_NO_SYMLINKS,
    };

    if (unlikely((flags & O_PATH) != 0)) {
        how.flags &= WITH_PATH;
        how.mode = 0;
    } else if (writes(flags) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL) && may_run(place)) {
        return SLOW;
    }
    if (unlikely(is_maps(place)))
        return SLOW;
    long descriptor = page_call(SYS_openat2, place->directory, (long)place->path, (long)&how, sizeof(how), 0);
    if (unlikely(descriptor == -ENOENT && (flags & O_CREAT) != 0))
        return SLOW;
    return descriptor;
}

static bool is_final(long result) {
    return result >= 0 || result == -ENOENT || result == -EEXIST || result == -EINTR || result == -EMFILE;
}

static __attribute__((noinline)) long open_followed(int directory, const char *path, int flags, unsigned mode) {
    const int made_or_link = O_NOFOLLOW | O_EXCL;
    char host[PLACE_HOST];
    struct place place;
    long result = (flags & made_or_link) != 0 ? SLOW : place_followed(path, host, &place);

    if (result == 0)
        result = open_place(&place, flags, mode);
    else if (result == -ENOENT && (flags & O_CREAT) != 0)
        result = SLOW;
    if (is_final(result)) {
        fast.hits++;
        return result;
    }
    return ask_tracer(SYS_openat, directory, (long)path, flags, mode, 0);
}

long fast_open(int directory, const char *path, int flags, unsigned mode) {
    char host[PLACE_HOST];
    struct place place;

    if (unlikely(!fast_is_on() || (flags & ~USUAL) != 0))
        return raw_call(SYS_openat, directory, (long)path, flags, mode, 0);
    long result = place_of(directory, path, host, &place);
    if (likely(result == 0))
        result = open_place(&place, flags, mode);
    else if (result == -ENOENT && (flags & O_CREAT) != 0)
        result = SLOW;
    if (unlikely(!is_final(result)))
        return open_followed(directory, path, flags, mode);
    fast.hits++;
    return result;
}

/* ---- libc's names ------------------------------------------------------------------------------------------------ */

#define TAKE_MODE(flags)                                                                                               \
    ({                                                                                                                 \
        unsigned mode_ = 0;                                                                                            \
        if (((flags) & O_CREAT) != 0 || ((flags) & O_TMPFILE) == O_TMPFILE) {                                          \
            va_list list;                                                                                              \
            va_start(list, flags);                                                                                     \
            mode_ = va_arg(list, unsigned);                                                                            \
            va_end(list);                                                                                              \
        }                                                                                                              \
        mode_;                                                                                                         \
    })

EXPORT int open(const char *path, int flags, ...) {
    unsigned mode = TAKE_MODE(flags);

    return (int)returned(fast_open(AT_FDCWD, path, flags, mode));
}

EXPORT int openat(int directory, const char *path, int flags, ...) {
    unsigned mode = TAKE_MODE(flags);

    return (int)returned(fast_open(directory, path, flags, mode));
}

EXPORT int creat(const char *path, mode_t mode) {
    return (int)returned(fast_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode));
}

EXPORT int __open_2(const char *path, int flags);
EXPORT int __openat_2(int directory, const char *path, int flags);
extern void abort(void) __attribute__((noreturn));

/* What glibc does there: such a call has forgotten its mode. */
static void refuse_without_mode(int flags) {
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE)
        abort();
}

int __open_2(const char *path, int flags) {
    refuse_without_mode(flags);
    return open(path, flags);
}

int __openat_2(int directory, const char *path, int flags) {
    refuse_without_mode(flags);
    return openat(directory, path, flags);
}

ALIAS(open) int open64(const char *path, int flags, ...);
ALIAS(openat) int openat64(int directory, const char *path, int flags, ...);
ALIAS(creat) int creat64(const char *path, mode_t mode);
ALIAS(__open_2) int __open64_2(const char *path, int flags);
ALIAS(__openat_2) int __openat64_2(int directory, const char *path, int flags);

/* opendir and fopen look at nothing but the descriptor once they have it. */
EXPORT DIR *opendir(const char *path) {
    long descriptor = fast_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_DIRECTORY | O_LARGE | O_CLOEXEC, 0);

    if (descriptor < 0) {
        failed(descriptor);
        return NULL;
    }
    DIR *opened = fdopendir((int)descriptor);
    if (opened == NULL)
        page_call(SYS_close, descriptor, 0, 0, 0, 0);
    return opened;
}
