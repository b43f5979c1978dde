/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * syscall(3): path calls that a program makes by number, as translators of other architectures do.
 *
 * Rules of this file
 *  - A row per number; what is not here goes to the kernel from syscall itself (route_<machine>).
 */
#include "library.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>

long fast_route(long number, long a, long b, long c, long d, long e);

enum { NUMBERS = 512 };

extern const uint8_t fast_routed[NUMBERS];

const uint8_t fast_routed[NUMBERS] = {
#ifdef SYS_open
    [SYS_open] = 1, [SYS_creat] = 1, [SYS_stat] = 1, [SYS_lstat] = 1, [SYS_access] = 1, [SYS_readlink] = 1,
    [SYS_mkdir] = 1, [SYS_unlink] = 1, [SYS_rename] = 1, [SYS_symlink] = 1, [SYS_chmod] = 1, [SYS_chown] = 1,
    [SYS_lchown] = 1,
#endif
    [SYS_openat] = 1, [SYS_newfstatat] = 1, [SYS_statx] = 1, [SYS_faccessat] = 1, [SYS_faccessat2] = 1,
    [SYS_readlinkat] = 1, [SYS_getcwd] = 1, [SYS_mkdirat] = 1, [SYS_unlinkat] = 1, [SYS_renameat2] = 1,
    [SYS_symlinkat] = 1, [SYS_fchmodat] = 1, [SYS_fchownat] = 1, [SYS_utimensat] = 1, [SYS_getxattr] = 1,
    [SYS_lgetxattr] = 1, [SYS_listxattr] = 1, [SYS_llistxattr] = 1, [SYS_statfs] = 1,
};

static long route(long number, long a, long b, long c, long d, long e) {
    switch (number) {
#ifdef SYS_open
    case SYS_open:
        return fast_open(AT_FDCWD, (const char *)a, (int)b, (unsigned)c);
    case SYS_creat:
        return fast_open(AT_FDCWD, (const char *)a, O_CREAT | O_WRONLY | O_TRUNC, (unsigned)b);
    case SYS_stat:
        return fast_stat(AT_FDCWD, (const char *)a, (void *)b, 0);
    case SYS_lstat:
        return fast_stat(AT_FDCWD, (const char *)a, (void *)b, AT_SYMLINK_NOFOLLOW);
    case SYS_access:
        return fast_access(AT_FDCWD, (const char *)a, (int)b);
    case SYS_readlink:
        return fast_readlink(AT_FDCWD, (const char *)a, (char *)b, (size_t)c);
    case SYS_mkdir:
        return fast_mkdir(AT_FDCWD, (const char *)a, (unsigned)b);
    case SYS_unlink:
        return fast_unlink(AT_FDCWD, (const char *)a, 0);
    case SYS_rename:
        return fast_rename(AT_FDCWD, (const char *)a, AT_FDCWD, (const char *)b, 0);
    case SYS_symlink:
        return fast_symlink((const char *)a, AT_FDCWD, (const char *)b);
    case SYS_chmod:
        return fast_chmod(AT_FDCWD, (const char *)a, (unsigned)b);
    case SYS_chown:
        return fast_chown(AT_FDCWD, (const char *)a, (unsigned)b, (unsigned)c, 0);
    case SYS_lchown:
        return fast_chown(AT_FDCWD, (const char *)a, (unsigned)b, (unsigned)c, AT_SYMLINK_NOFOLLOW);
#endif
    case SYS_openat:
        return fast_open((int)a, (const char *)b, (int)c, (unsigned)d);
    case SYS_newfstatat:
        return fast_stat((int)a, (const char *)b, (void *)c, (int)d);
    case SYS_statx:
        return fast_statx((int)a, (const char *)b, (int)c, (unsigned)d, (void *)e);
    case SYS_faccessat:
        return fast_access((int)a, (const char *)b, (int)c);
    case SYS_faccessat2:
        return fast_access2((int)a, (const char *)b, (int)c, (int)d);
    case SYS_readlinkat:
        return fast_readlink((int)a, (const char *)b, (char *)c, (size_t)d);
    case SYS_getcwd:
        return fast_getcwd((char *)a, (size_t)b);
    case SYS_mkdirat:
        return fast_mkdir((int)a, (const char *)b, (unsigned)c);
    case SYS_unlinkat:
        return fast_unlink((int)a, (const char *)b, (int)c);
    case SYS_renameat2:
        return fast_rename((int)a, (const char *)b, (int)c, (const char *)d, (unsigned)e);
    case SYS_symlinkat:
        return fast_symlink((const char *)a, (int)b, (const char *)c);
    case SYS_fchmodat:
        return fast_chmod((int)a, (const char *)b, (unsigned)c);
    case SYS_fchownat:
        return fast_chown((int)a, (const char *)b, (unsigned)c, (unsigned)d, (int)e);
    case SYS_utimensat:
        return fast_utimens((int)a, (const char *)b, (const void *)c, (int)d);
    case SYS_getxattr:
    case SYS_lgetxattr:
        return fast_getxattr((const char *)a, (const char *)b, (void *)c, (size_t)d, number == SYS_getxattr);
    case SYS_listxattr:
    case SYS_llistxattr:
        return fast_listxattr((const char *)a, (char *)b, (size_t)c, number == SYS_listxattr);
    case SYS_statfs:
        return fast_statfs((const char *)a, (void *)b);
    default:
        return raw_call(number, a, b, c, d, e);
    }
}

long fast_route(long number, long a, long b, long c, long d, long e) {
    return returned(!fast_is_on() ? raw_call(number, a, b, c, d, e) : route(number, a, b, c, d, e));
}

#if !defined(__x86_64__)
EXPORT long syscall(long number, ...);

long syscall(long number, ...) {
    long arguments[6];
    va_list list;

    va_start(list, number);
    for (int n = 0; n < 6; n++)
        arguments[n] = va_arg(list, long);
    va_end(list);
    if (number >= 0 && number < NUMBERS && fast_routed[number] != 0)
        return fast_route(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
    return returned(raw_call6(number, arguments));
}
#endif
