/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * From a path of the caller's to what the kernel is given (rules: place.h).
 *
 * Rules of this file
 *  - What is not remembered is walked by the resolver, from the longest beginning that is; each beginning of the path
 *    is remembered on the way.
 *  - What the resolver would have to ask the tracer about (who is a guest process, what only the kernel can follow)
 *    goes to the tracer. What depends on the caller is not remembered.
 */
#include "place.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

#include "cache.h"
#include "resolver/walk.h"
#include "text.h"

enum { MOST_STEPS = 4 }; /* of a relative path: beyond, one stop costs less */

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* Whether the walk asked about a process: context points to it. */
static int guest_exe(const struct dd_process *process, pid_t pid, char *buffer, size_t size) {
    (void)pid;
    (void)buffer;
    (void)size;
    *(bool *)process->context = true;
    return -ESRCH;
}

/* A path that does not begin in procfs has come there by a link: ids are not asked for every walk. */
static pid_t tgid_of(const struct dd_process *process) {
    *(bool *)process->context = true;
    return 1;
}

/* The longest remembered beginning of the text; the walk starts there. Its length. */
static size_t start(const char *literal, size_t length, struct dd_result *at, struct found *found) {
    const struct dd_bind *bind;

    for (; length > 0; length--) {
        while (length > 0 && literal[length] != '/')
            length--;
        if (length > 0 && cache_find(literal, length, at->host, found))
            break;
        if (length == 0)
            break;
    }
    if (length == 0) {
        dd_walk_at_root(&session()->view, at);
        return 0;
    }
    at->host_length = at->name_length = found->host_length;
    at->host[at->host_length] = '\0';
    at->mount = found->mount;
    at->links = found->links;
    bind = &session()->view.binds[found->mount];
    at->guest_length = bind->guest_length + at->host_length - bind->host_length;
    memcpy(at->guest, bind->guest, bind->guest_length);
    memcpy(at->guest + bind->guest_length, at->host + bind->host_length, at->host_length - bind->host_length + 1);
    return length;
}

/* The next component, and whether it fits. */
static const char *take(const char *from, const char *end, char name[256], size_t *length) {
    while (from < end && *from == '/')
        from++;
    *length = 0;
    while (from + *length < end && from[*length] != '/')
        ++*length;
    if (*length >= 256)
        return NULL;
    memcpy(name, from, *length);
    name[*length] = '\0';
    return from + *length;
}

/* literal leads to host; *found says the rest. */
static __attribute__((noinline)) long walk(const char *literal, size_t length, char *host, struct found *found) {
    struct dd_result at;
    char name[256];
    bool asked = false, must_be_directory = false;
    struct dd_process process = {.tgid_of = tgid_of, .guest_exe = guest_exe, .context = &asked};
    const char *next, *end = literal + length;
    uint64_t epoch = epoch_now();
    size_t size;

    if (length >= 5 && memcmp(literal, "/proc", 5) == 0) {
        process.tid = (pid_t)page_call(SYS_gettid, 0, 0, 0, 0, 0);
        process.tgid = (pid_t)page_call(SYS_getpid, 0, 0, 0, 0, 0);
    }
    at.changed = at.magic = at.missing = at.mount_point = at.outside = at.caller_dependent = at.up = false;
    at.links = 0;
    at.name_length = 0;
    next = literal + start(literal, length, &at, found);
    for (;;) {
        next = take(next, end, name, &size);
        if (next == NULL)
            return SLOW;
        if (size == 0)
            break;
        if (at.missing)
            return -ENOENT;
        int error = dd_walk(&session()->view, &process, name, DD_FOLLOW, NULL, &at);
        if (error != 0 || at.magic || at.outside || asked)
            return error == -ENOENT && !asked ? error : SLOW;
        /* A link whose text ends in a slash asks for a directory; what comes next shows whether it is one. */
        must_be_directory = at.host_length > at.name_length && !is_dots(name, size);
        at.host_length = at.name_length;
        at.host[at.host_length] = '\0';
        *found = (struct found){at.mount, at.host_length, at.links, epoch};
        if (!at.caller_dependent && !at.missing && !must_be_directory)
            cache_put(literal, (size_t)(next - literal), at.host, found);
    }
    if (at.missing)
        return -ENOENT;
    if (must_be_directory)
        return SLOW;
    *found = (struct found){at.mount, at.host_length, at.links, epoch};
    memcpy(host, at.host, at.host_length);
    return 0;
}

static inline long lead(const char *literal, size_t length, char *host, struct found *found) {
    if (likely(cache_find(literal, length, host, found)))
        return 0;
    return walk(literal, length, host, found);
}

long place_open(int directory, const char *path, uint64_t flags) {
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | flags, .resolve = RESOLVE_NO_SYMLINKS};

    return page_call(SYS_openat2, directory, (long)path, (long)&how, sizeof(how), 0);
}

bool place_in_procfs(const char *host) {
    return !session()->view.no_procfs && memcmp(host, "/proc", 5) == 0 && (host[5] == '/' || host[5] == '\0');
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static __attribute__((noinline)) long relative(int directory, const char *path, int length, char *host,
                                               struct place *place) {
    char text[1];
    int steps = 0;

    memcpy(host, path, (size_t)length + 1);
    for (int at = 0, end; at < length; at = end + 1) {
        for (end = at; host[end] != '\0' && host[end] != '/'; end++)
            ;
        size_t size = (size_t)(end - at);
        if (size == 0 || is_dots(host + at, size) || may_be_mount_name(host + at, size) || ++steps > MOST_STEPS)
            return SLOW;
        if (end >= length)
            break;
        host[end] = '\0';
        long found = page_call(SYS_readlinkat, directory, (long)host, (long)text, sizeof(text), 0);
        host[end] = '/';
        if (found != -EINVAL)
            return found == -ENOENT ? found : SLOW;
    }
    place->directory = directory;
    place->path = path;
    place->mount = -1;
    return 0;
}

/* The name in that directory is a mount point's, or may be one's. */
static __attribute__((noinline)) bool is_mount_point(const struct found *found, const char *host, const char *name,
                                                     size_t length) {
    const struct dd_bind *bind = &session()->view.binds[found->mount];
    size_t rest = found->host_length - bind->host_length, at = bind->guest_length;
    char guest[PLACE_HOST];

    if (at + rest + 1 + length > sizeof(guest))
        return true;
    memcpy(guest, bind->guest, at);
    memcpy(guest + at, host + bind->host_length, rest);
    guest[at + rest] = '/';
    memcpy(guest + at + rest + 1, name, length);
    return dd_view_mount_at(&session()->view, guest, at + rest + 1 + length) >= 0;
}

long place_of(int directory, const char *path, char *host, struct place *place) {
    struct found found;

    if (unlikely((uintptr_t)path < 4096 || (intptr_t)path < 0))
        return SLOW; /* no address: the kernel says what is wrong with it */
    struct scanned text = scan(path, PLACE_LITERAL);
    if (unlikely(text.length == PLACE_LITERAL))
        return SLOW;
    place->name = path + text.slash + 1;
    place->name_length = (size_t)(text.length - text.slash - 1);
    place->epoch = epoch_now();
    place->absolute = place->is_dot = false;
    if (unlikely(place->name_length == 0 || is_dots(place->name, place->name_length))) {
        place->is_dot = text.length == 1 && path[0] == '.';
        if (!place->is_dot)
            return SLOW;
    }
    if (path[0] != '/') {
        if (unlikely(may_be_mount_name(place->name, place->name_length)))
            return SLOW;
        if (text.slash >= 0)
            return relative(directory, path, text.length, host, place);
        place->directory = directory;
        place->path = path;
        place->mount = -1;
        return 0;
    }
    long error = lead(path, (size_t)text.slash, host, &found);
    if (unlikely(error != 0))
        return error;
    if (unlikely(may_be_mount_name(place->name, place->name_length)) &&
        is_mount_point(&found, host, place->name, place->name_length))
        return SLOW;
    place->epoch = found.epoch;
    place->mount = found.mount;
    place->directory_length = found.host_length;
    place->directory = AT_FDCWD;
    place->path = host;
    place->absolute = true;
    copy_exact(host + found.host_length, path + text.slash, place->name_length + 1);
    host[found.host_length + place->name_length + 1] = '\0';
    return 0;
}

long place_followed(const char *path, char *host, struct place *place) {
    struct found found;

    if ((uintptr_t)path < 4096 || (intptr_t)path < 0 || path[0] != '/')
        return SLOW;
    struct scanned text = scan(path, PLACE_LITERAL);
    size_t length = (size_t)text.length;
    if (text.length == PLACE_LITERAL)
        return SLOW;
    place->name = path + text.slash + 1;
    place->name_length = length - (size_t)text.slash - 1;
    if (place->name_length > 0 && is_dots(place->name, place->name_length))
        return SLOW;
    while (length > 0 && path[length - 1] == '/')
        length--;
    long error = lead(path, length, host, &found);
    if (error != 0)
        return error;
    /* A slash at the end stays: what is there must be a directory. */
    bool slash = found.host_length == 0 || (length > 0 && path[length] == '/');
    host[found.host_length] = slash ? '/' : '\0';
    host[found.host_length + 1] = '\0';
    place->is_dot = false;
    place->directory = AT_FDCWD;
    place->path = host;
    place->directory_length = found.host_length;
    place->mount = found.mount;
    place->epoch = found.epoch;
    place->absolute = true;
    return 0;
}
