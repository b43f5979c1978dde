/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * realpath.
 *
 * Rules of this file
 *  - libc's own asks about every component; here one call shows that what was found is still there. Absolute paths
 *    without dots at the end, outside of procfs; the rest is libc's.
 *  - libc's own is reached as canonicalize_file_name, which this library does not answer: no search for symbols.
 */
#include "library.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "place.h"

/* The length of the guest's name, in `guest`; or SLOW. */
static long guest_name(const char *path, char guest[PLACE_HOST]) {
    char host[PLACE_HOST], text[1];
    struct place place;
    const struct dd_bind *bind;

    if (!fast_is_on() || place_followed(path, host, &place) != 0 || place_in_procfs(host))
        return SLOW;
    if (page_call(SYS_readlinkat, AT_FDCWD, (long)host, (long)text, sizeof(text), 0) != -EINVAL || !place_holds(&place))
        return SLOW;
    bind = &session()->view.binds[place.mount];
    size_t rest = place.directory_length - bind->host_length;
    if (bind->guest_length + rest + 2 > PLACE_HOST)
        return SLOW;
    memcpy(guest, bind->guest, bind->guest_length);
    memcpy(guest + bind->guest_length, host + bind->host_length, rest);
    if (bind->guest_length + rest == 0)
        guest[rest++] = '/';
    guest[bind->guest_length + rest] = '\0';
    return (long)(bind->guest_length + rest);
}

static __attribute__((noinline)) char *libc_name(const char *path, char *resolved) {
    char *found = canonicalize_file_name(path);

    if (found == NULL || resolved == NULL)
        return found;
    if (strlen(found) >= PATH_MAX) {
        failed(-ENAMETOOLONG);
        resolved = NULL;
    } else {
        strcpy(resolved, found);
    }
    free(found);
    return resolved;
}

static __attribute__((noinline)) char *fast_name(const char *path, char *resolved) {
    char guest[PLACE_HOST];
    long length = path == NULL ? SLOW : guest_name(path, guest);

    if (length < 0)
        return NULL;
    if (resolved == NULL)
        resolved = malloc((size_t)length + 1);
    if (resolved != NULL)
        memcpy(resolved, guest, (size_t)length + 1);
    fast.hits++;
    return resolved;
}

static char *find(const char *path, char *resolved) {
    char *found = fast_name(path, resolved);

    return found != NULL ? found : libc_name(path, resolved);
}

EXPORT char *realpath(const char *restrict path, char *restrict resolved) {
    return find(path, resolved);
}

EXPORT char *__realpath_chk(const char *path, char *resolved, size_t room);

char *__realpath_chk(const char *path, char *resolved, size_t room) {
    if (room < PATH_MAX)
        abort(); /* as glibc */
    return find(path, resolved);
}
