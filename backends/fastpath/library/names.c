/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * access, readlink, getcwd, realpath: what a name is.
 *
 * Rules of this file
 *  - access has no way to say "no link": the name is looked up with its links followed and remembered as such; one call
 *    is left.
 *  - A link's text stands in guest terms, but for those of procfs. Of those only /proc/self/exe is known here.
 */
#include "library.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "place.h"

/* ---- access ------------------------------------------------------------------------------------------------------ */

static bool access_is_final(long result) {
    return result == 0 || result == -ENOENT || result == -EACCES || result == -EROFS;
}

static long access_of(long number, int directory, const char *path, int mode, int flags) {
    char host[PLACE_HOST], text[1];
    struct place place;
    long result = SLOW;

    if (!fast_is_on() || (mode & ~(R_OK | W_OK | X_OK)) != 0 || (flags & ~AT_EACCESS) != 0)
        return raw_call(number, directory, (long)path, mode, flags, 0);
    if ((uintptr_t)path >= 4096 && (intptr_t)path > 0 && path[0] == '/') {
        result = place_followed(path, host, &place);
    } else {
        result = place_of(directory, path, host, &place);
        if (result == 0) {
            result = page_call(SYS_readlinkat, place.directory, (long)place.path, (long)text, sizeof(text), 0);
            result = result == -EINVAL ? 0 : result == -ENOENT ? result : SLOW;
        }
    }
    if (result == 0)
        result = page_call(number, place.directory, (long)place.path, mode, flags, 0);
    if (access_is_final(result) && (result == -ENOENT || place_holds(&place))) {
        fast.hits++;
        return result;
    }
    return ask_tracer(number, directory, (long)path, mode, flags, 0);
}

long fast_access(int directory, const char *path, int mode) {
    return access_of(SYS_faccessat, directory, path, mode, 0);
}

long fast_access2(int directory, const char *path, int mode, int flags) {
    return access_of(SYS_faccessat2, directory, path, mode, flags);
}

EXPORT int access(const char *path, int mode) {
#ifdef SYS_access
    if (!fast_is_on())
        return (int)returned(raw_call(SYS_access, (long)path, mode, 0, 0, 0));
#endif
    return (int)returned(fast_access(AT_FDCWD, path, mode));
}

EXPORT int faccessat(int directory, const char *path, int mode, int flags) {
    return (int)returned(flags == 0 ? fast_access(directory, path, mode) : fast_access2(directory, path, mode, flags));
}

EXPORT int eaccess(const char *path, int mode) {
    return (int)returned(fast_access2(AT_FDCWD, path, mode, AT_EACCESS));
}

ALIAS(eaccess) int euidaccess(const char *path, int mode);

/* ---- readlink ---------------------------------------------------------------------------------------------------- */

static inline bool is_own_exe(const char *path) {
    static const char own[] = "/proc/self/exe";

    for (size_t n = 0; n < sizeof(own); n++)
        if (path[n] != own[n])
            return false;
    return session()->view.no_procfs == false && dd_view_mount_at(&session()->view, own, sizeof(own) - 1) < 0 &&
           info()->exe_at != 0 && info()->pool[info()->exe_at] == '/';
}

long fast_readlink(int directory, const char *path, char *buffer, size_t size) {
    char host[PLACE_HOST];
    struct place place;

    if (!fast_is_on() || (int)size <= 0)
        return raw_call(SYS_readlinkat, directory, (long)path, (long)buffer, (long)size, 0);
    if ((uintptr_t)path >= 4096 && (intptr_t)path > 0 && is_own_exe(path)) {
        const char *exe = info()->pool + info()->exe_at;
        size_t length = strlen(exe);
        fast.hits++;
        length = length < size ? length : size;
        memcpy(buffer, exe, length);
        return (long)length;
    }
    long result = place_of(directory, path, host, &place);
    if (result == 0) {
        if (place.absolute && place_in_procfs(host))
            goto slow;
        result = page_call(SYS_readlinkat, place.directory, (long)place.path, (long)buffer, (long)size, 0);
        if ((result < 0 && result != -EINVAL && result != -ENOENT) || !place_holds(&place))
            goto slow;
        if (result > 0 && !place.absolute && buffer[0] == '/')
            goto slow; /* the directory may be one of procfs */
    } else if (result != -ENOENT) {
        goto slow;
    }
    fast.hits++;
    return result;
slow:
    return ask_tracer(SYS_readlinkat, directory, (long)path, (long)buffer, (long)size, 0);
}

EXPORT ssize_t readlink(const char *restrict path, char *restrict buffer, size_t size) {
#ifdef SYS_readlink
    if (!fast_is_on())
        return returned(raw_call(SYS_readlink, (long)path, (long)buffer, (long)size, 0, 0));
#endif
    return returned(fast_readlink(AT_FDCWD, path, buffer, size));
}

EXPORT ssize_t readlinkat(int directory, const char *restrict path, char *restrict buffer, size_t size) {
    return returned(fast_readlink(directory, path, buffer, size));
}

EXPORT ssize_t __readlink_chk(const char *path, char *buffer, size_t size, size_t room);
EXPORT ssize_t __readlinkat_chk(int directory, const char *path, char *buffer, size_t size, size_t room);

ssize_t __readlink_chk(const char *path, char *buffer, size_t size, size_t room) {
    return __readlinkat_chk(AT_FDCWD, path, buffer, size, room);
}

ssize_t __readlinkat_chk(int directory, const char *path, char *buffer, size_t size, size_t room) {
    if (size > room)
        abort(); /* as glibc: the caller's buffer is smaller than it says */
    return readlinkat(directory, path, buffer, size);
}

/* ---- getcwd ------------------------------------------------------------------------------------------------------ */

/* The guest's name of the working directory: its length, 0 for the root, or SLOW. */
static long guest_cwd(char guest[DD_PATH_BUFFER]) {
    char host[DD_PATH_BUFFER];
    long length = page_call(SYS_getcwd, (long)host, sizeof(host), 0, 0, 0);

    if (length <= 1 || host[0] != '/')
        return SLOW;
    length = dd_guest_name(&session()->view, host, length == 2 ? 0 : (size_t)length - 1, guest);
    return length < 0 ? SLOW : length;
}

/* As getcwd(2): the length with the NUL. */
long fast_getcwd(char *buffer, size_t size) {
    char guest[DD_PATH_BUFFER];
    long length = fast_is_on() ? guest_cwd(guest) : SLOW;

    if (length < 0)
        return ask_tracer(SYS_getcwd, (long)buffer, (long)size, 0, 0, 0);
    if (length == 0)
        guest[length++] = '/';
    guest[length++] = '\0';
    fast.hits++;
    if ((size_t)length > size)
        return -ERANGE;
    if ((uintptr_t)buffer < 4096)
        return -EFAULT;
    memcpy(buffer, guest, (size_t)length);
    return length;
}

/* A name that goes beyond what fits here; libc's own would begin with the same call. */
static char *long_cwd(size_t size) {
    char *buffer = malloc(size != 0 ? size : PATH_MAX);
    long length = buffer == NULL ? -ENOMEM : raw_call(SYS_getcwd, (long)buffer, size != 0 ? (long)size : PATH_MAX, 0, 0, 0);

    if (length < 0) {
        free(buffer);
        failed(length);
        return NULL;
    }
    return buffer;
}

EXPORT char *getcwd(char *buffer, size_t size) {
    char guest[DD_PATH_BUFFER];
    long length;

    if (buffer != NULL) {
        length = size == 0 ? -EINVAL : fast_getcwd(buffer, size);
        return returned(length) < 0 ? NULL : buffer;
    }
    length = fast_getcwd(guest, sizeof(guest));
    if (length < 0)
        return long_cwd(size);
    if (size != 0 && (size_t)length > size) {
        failed(-ERANGE);
        return NULL;
    }
    buffer = malloc(size != 0 ? size : (size_t)length);
    return buffer == NULL ? NULL : memcpy(buffer, guest, (size_t)length);
}

EXPORT char *__getcwd_chk(char *buffer, size_t size, size_t room);

char *__getcwd_chk(char *buffer, size_t size, size_t room) {
    if (size > room)
        abort();
    return getcwd(buffer, size);
}
