/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What else is asked of a file by its path: extended attributes, and its file system.
 *
 * Rules of this file
 *  - Reads only; these calls have no way to say "no link", so the name is looked up with its links followed (as access
 *    is), and an answer counts if no name was made to lead elsewhere meanwhile.
 */
#include "library.h"

#include <fcntl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "place.h"

/* Of the last component, with or without following a link there. */
static long find(const char *path, bool follow, char *host, struct place *place) {
    if (!fast_is_on())
        return SLOW;
    return follow ? place_followed(path, host, place) : place_of(AT_FDCWD, path, host, place);
}

/* number is that of the call on `path`, of its sibling that follows no link, or the like: the path comes first. */
static long ask(long asked, long number, const char *path, bool follow, long b, long c, long d) {
    char host[PLACE_HOST];
    struct place place;
    long result = SLOW;

    if (find(path, follow, host, &place) == 0 && place.absolute) {
        result = page_call(number, (long)place.path, b, c, d, 0);
        if (place_holds(&place) && result >= 0) {
            fast.hits++;
            return result;
        }
    }
    return ask_tracer(asked, (long)path, b, c, d, 0);
}

long fast_getxattr(const char *path, const char *name, void *value, size_t size, bool follow) {
    return ask(follow ? SYS_getxattr : SYS_lgetxattr, SYS_lgetxattr, path, follow, (long)name, (long)value, (long)size);
}

long fast_listxattr(const char *path, char *list, size_t size, bool follow) {
    return ask(follow ? SYS_listxattr : SYS_llistxattr, SYS_llistxattr, path, follow, (long)list, (long)size, 0);
}

long fast_statfs(const char *path, void *status) {
    return ask(SYS_statfs, SYS_statfs, path, true, (long)status, 0, 0);
}

EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t size);
EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size);
EXPORT ssize_t listxattr(const char *path, char *list, size_t size);
EXPORT ssize_t llistxattr(const char *path, char *list, size_t size);

ssize_t getxattr(const char *path, const char *name, void *value, size_t size) {
    return returned(fast_getxattr(path, name, value, size, true));
}

ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size) {
    return returned(fast_getxattr(path, name, value, size, false));
}

ssize_t listxattr(const char *path, char *list, size_t size) {
    return returned(fast_listxattr(path, list, size, true));
}

ssize_t llistxattr(const char *path, char *list, size_t size) {
    return returned(fast_listxattr(path, list, size, false));
}

EXPORT int statfs(const char *path, struct statfs *status) {
    return (int)returned(fast_statfs(path, status));
}

ALIAS(statfs) int statfs64(const char *path, struct statfs64 *status);
