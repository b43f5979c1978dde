/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * stat, lstat, fstat, fstatat, statx.
 *
 * Rules of this file
 *  - The call is made without following a link at the end, and tells by itself whether there is one.
 *  - struct stat is the kernel's on the 64-bit architectures.
 */
#include "library.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/syscall.h>

#include "place.h"


/* asm/stat.h, as far as it is looked at. */
struct kernel_stat {
#if defined(__x86_64__)
    uint64_t device, inode, links;
    uint32_t mode, uid, gid;
#else
    uint64_t device, inode;
    uint32_t mode, links, uid, gid;
#endif
};

static inline void show_owner(uint32_t *uid, uint32_t *gid) {
    if (likely(!session()->has_ids))
        return;
    if (*uid == session()->real_uid)
        *uid = session()->uid;
    if (*gid == session()->real_gid)
        *gid = session()->gid;
}

static long stat_place(const struct place *place, void *status, bool follow) {
    struct kernel_stat *got = status;
    long error = page_call(SYS_newfstatat, place->directory, (long)place->path, (long)status, AT_SYMLINK_NOFOLLOW, 0);

    if (unlikely(error != 0 && error != -ENOENT) || !place_holds(place))
        return SLOW;
    if (error == 0) {
        if (follow && (got->mode & S_IFMT) == S_IFLNK)
            return SLOW;
        show_owner(&got->uid, &got->gid);
    }
    fast.hits++;
    return error;
}

static __attribute__((noinline)) long stat_followed(int directory, const char *path, void *status, int flags) {
    char host[PLACE_HOST];
    struct place place;
    long error = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? SLOW : place_followed(path, host, &place);

    if (error == 0)
        error = stat_place(&place, status, true);
    if (error == 0 || error == -ENOENT)
        return error;
    return ask_tracer(SYS_newfstatat, directory, (long)path, (long)status, flags, 0);
}

long fast_fstat(int descriptor, void *status) {
    struct kernel_stat *got = status;

    if (!fast_is_on())
        return raw_call(SYS_fstat, descriptor, (long)status, 0, 0, 0);
    long error = page_call(SYS_fstat, descriptor, (long)status, 0, 0, 0);
    if (error == 0)
        show_owner(&got->uid, &got->gid);
    return error;
}

long fast_stat(int directory, const char *path, void *status, int flags) {
    char host[PLACE_HOST];
    struct place place;

    if (unlikely(!fast_is_on() || (flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)) != 0)) {
        if ((flags & AT_EMPTY_PATH) != 0 && directory >= 0 && (uintptr_t)path >= 4096 && (intptr_t)path > 0 &&
            path[0] == '\0' && (flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)) == 0)
            return fast_fstat(directory, status);
        return raw_call(SYS_newfstatat, directory, (long)path, (long)status, flags, 0);
    }
    long error = place_of(directory, path, host, &place);
    if (likely(error == 0))
        error = stat_place(&place, status, (flags & AT_SYMLINK_NOFOLLOW) == 0);
    return likely(error == 0 || error == -ENOENT) ? error : stat_followed(directory, path, status, flags);
}

long fast_statx(int directory, const char *path, int flags, unsigned mask, void *status) {
    const int known = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC;
    struct statx *got = status;
    char host[PLACE_HOST];
    struct place place;
    long error = SLOW;

    if (!fast_is_on() || (flags & ~known) != 0 || (mask & STATX__RESERVED) != 0)
        return raw_call(SYS_statx, directory, (long)path, flags, mask, (long)status);
    error = place_of(directory, path, host, &place);
    if (error == 0 && place.is_dot)
        error = SLOW; /* the root of a mount says so */
    if (error == 0) {
        error = page_call(SYS_statx, place.directory, (long)place.path, flags | AT_SYMLINK_NOFOLLOW, mask,
                          (long)status);
        if (!place_holds(&place))
            error = SLOW;
    }
    if (error == 0 && (flags & AT_SYMLINK_NOFOLLOW) == 0 && ((got->stx_mask & STATX_TYPE) == 0 || (got->stx_mode & S_IFMT) == S_IFLNK))
        error = SLOW;
    if (error == 0)
        show_owner(&got->stx_uid, &got->stx_gid);
    if (error != 0 && error != -ENOENT)
        return ask_tracer(SYS_statx, directory, (long)path, flags, mask, (long)status);
    fast.hits++;
    return error;
}

/* ---- libc's names ------------------------------------------------------------------------------------------------ */

struct stat;
struct statx;

EXPORT int stat(const char *restrict path, struct stat *restrict status);
EXPORT int lstat(const char *restrict path, struct stat *restrict status);
EXPORT int fstat(int descriptor, struct stat *status);
EXPORT int fstatat(int directory, const char *restrict path, struct stat *restrict status, int flags);
EXPORT int statx(int directory, const char *restrict path, int flags, unsigned mask, struct statx *restrict status);

int stat(const char *restrict path, struct stat *restrict status) {
    return (int)returned(fast_stat(AT_FDCWD, path, status, 0));
}

int lstat(const char *restrict path, struct stat *restrict status) {
    return (int)returned(fast_stat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW));
}

int fstat(int descriptor, struct stat *status) {
    return (int)returned(fast_fstat(descriptor, status));
}

int fstatat(int directory, const char *restrict path, struct stat *restrict status, int flags) {
    return (int)returned(fast_stat(directory, path, status, flags));
}

int statx(int directory, const char *restrict path, int flags, unsigned mask, struct statx *restrict status) {
    return (int)returned(fast_statx(directory, path, flags, mask, status));
}

ALIAS(stat) int stat64(const char *restrict path, struct stat *restrict status);
ALIAS(lstat) int lstat64(const char *restrict path, struct stat *restrict status);
ALIAS(fstat) int fstat64(int descriptor, struct stat *status);
ALIAS(fstatat) int fstatat64(int directory, const char *restrict path, struct stat *restrict status, int flags);

/* The names that programs built before glibc 2.33 call. */
#if defined(__x86_64__)
enum { STAT_VERSION = 1 }; /* _STAT_VER_LINUX, bits/stat.h */
#else
enum { STAT_VERSION = 0 };
#endif

EXPORT int __fxstatat(int version, int directory, const char *path, struct stat *status, int flags);
EXPORT int __xstat(int version, const char *path, struct stat *status);
EXPORT int __lxstat(int version, const char *path, struct stat *status);
EXPORT int __fxstat(int version, int descriptor, struct stat *status);

/* The kernel's own version, 0 on x86-64, has the same struct there. */
static bool knows(int version) {
    return version == STAT_VERSION || version == 0;
}

int __fxstatat(int version, int directory, const char *path, struct stat *status, int flags) {
    return (int)returned(knows(version) ? fast_stat(directory, path, status, flags) : -EINVAL);
}

int __xstat(int version, const char *path, struct stat *status) {
#ifdef SYS_stat
    if (!fast_is_on() && knows(version))
        return (int)returned(raw_call(SYS_stat, (long)path, (long)status, 0, 0, 0));
#endif
    return __fxstatat(version, AT_FDCWD, path, status, 0);
}

int __lxstat(int version, const char *path, struct stat *status) {
#ifdef SYS_lstat
    if (!fast_is_on() && knows(version))
        return (int)returned(raw_call(SYS_lstat, (long)path, (long)status, 0, 0, 0));
#endif
    return __fxstatat(version, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

int __fxstat(int version, int descriptor, struct stat *status) {
    return (int)returned(knows(version) ? fast_fstat(descriptor, status) : -EINVAL);
}

ALIAS(__fxstatat) int __fxstatat64(int version, int directory, const char *path, struct stat *status, int flags);
ALIAS(__xstat) int __xstat64(int version, const char *path, struct stat *status);
ALIAS(__lxstat) int __lxstat64(int version, const char *path, struct stat *status);
ALIAS(__fxstat) int __fxstat64(int version, int descriptor, struct stat *status);
