/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What all parts of the library share.
 *
 * Rules of the library
 *  - A path is resolved here and the call made from the page, on the host's path; any doubt, and the same call is made
 *    from the library's own text, which the tracer answers.
 *  - It holds no descriptor, allocates nothing, takes no lock, and needs less than 4 KiB of stack: its callers are
 *    handlers, vfork children and threads with small stacks.
 *  - errno changes only where a call fails.
 *  - No constructor: a process that makes no path call pays nothing.
 *  - It is no boundary: whoever wants to can call the page with any host path.
 */
#ifndef DD_LIBRARY_H
#define DD_LIBRARY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "session_page.h"

#if defined(__x86_64__)
#include "arch_x86_64.h"
#elif defined(__aarch64__)
#include "arch_aarch64.h"
#else
#error "the library does not know this architecture"
#endif

#define EXPORT __attribute__((visibility("default")))
#define ALIAS(of) __attribute__((visibility("default"), alias(#of)))
#define RARE __attribute__((noinline, cold))
#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

/* For the tracer to answer. No system call has this result. */
#define SLOW (-100000L)

enum fast_state { FAST_UNKNOWN, FAST_ON, FAST_OFF };

struct fast {
    enum fast_state state;
    unsigned life_ms;         /* of what is remembered, against changes from outside of the session; 0: nothing is */
    uint64_t mount_names[64]; /* a bit for each last component of a mount point (decide.c, mount_name_bit) */
    unsigned long hits, misses;
    const char *why_off;
    bool tells; /* at the end (stats.c) */
};

extern struct fast fast __attribute__((visibility("hidden")));

/* Finds out whether the fast path is on, once a process. */
bool fast_decide(void);

static inline const struct dd_session *session(void) {
    return (const struct dd_session *)(uintptr_t)DD_SESSION;
}

static inline const struct dd_info *info(void) {
    return (const struct dd_info *)(uintptr_t)DD_LOADER_INFO;
}

/* A program that has a seccomp filter of its own must see no call that it did not make: the tracer notes it there. */
static inline bool fast_is_on(void) {
    if (likely(fast.state == FAST_ON))
        return likely(!info()->has_own_filter);
    return fast.state == FAST_UNKNOWN && fast_decide();
}

static inline uint64_t epoch_now(void) {
    return __atomic_load_n((const uint64_t *)(uintptr_t)DD_EPOCH_PAGE, __ATOMIC_ACQUIRE);
}

static inline void epoch_raise(void) {
    __atomic_add_fetch((uint64_t *)(uintptr_t)DD_EPOCH_PAGE, 1, __ATOMIC_SEQ_CST);
}

/* The tracer's answer to the same call. */
static inline long ask_tracer(long number, long a, long b, long c, long d, long e) {
    fast.misses++;
    return raw_call(number, a, b, c, d, e);
}

/* As libc returns a result. */
RARE long failed(long error);

static inline long returned(long result) {
    return unlikely(result < 0) ? failed(result) : result;
}

/* The calls themselves, by family: 0 or more, or -errno. */
long fast_stat(int directory, const char *path, void *status, int flags);
long fast_fstat(int descriptor, void *status);
long fast_statx(int directory, const char *path, int flags, unsigned mask, void *status);
long fast_open(int directory, const char *path, int flags, unsigned mode);
long fast_access(int directory, const char *path, int mode);
long fast_access2(int directory, const char *path, int mode, int flags);
long fast_readlink(int directory, const char *path, char *buffer, size_t size);
long fast_getcwd(char *buffer, size_t size);
long fast_mkdir(int directory, const char *path, unsigned mode);
long fast_unlink(int directory, const char *path, int flags);
long fast_rename(int from_directory, const char *from, int to_directory, const char *to, unsigned flags);
long fast_symlink(const char *text, int directory, const char *path);
long fast_chmod(int directory, const char *path, unsigned mode);
long fast_chown(int directory, const char *path, unsigned uid, unsigned gid, int flags);
long fast_utimens(int directory, const char *path, const void *times, int flags);
long fast_getxattr(const char *path, const char *name, void *value, size_t size, bool follow);
long fast_listxattr(const char *path, char *list, size_t size, bool follow);
long fast_statfs(const char *path, void *status);

#endif
