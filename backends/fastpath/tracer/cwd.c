/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * getcwd, in guest terms; and chroot, which can only lead to where the guest is already.
 */
#define _GNU_SOURCE
#include "cwd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "call.h"
#include "identity.h"
#include "memory.h"
#include "tracer.h"

/* A name that ends so may be a real one: then the directory has links. */
static bool is_removed(const struct call *call, const char *host, size_t length) {
    static const char suffix[] = " (deleted)";
    char name[64];
    struct stat status;

    if (length < strlen(suffix) || strcmp(host + length - strlen(suffix), suffix) != 0)
        return false;
    call_descriptor_name(call, AT_FDCWD, name, sizeof(name));
    return stat(name, &status) == 0 && status.st_nlink == 0;
}

/* As getcwd(2): the length with the NUL, or -errno. A directory that no bind shows is led by "(unreachable)", as the
 * kernel does with one outside of the root. */
static long guest_cwd(const struct call *call, char guest[DD_PATH_BUFFER]) {
    static const char unreachable[] = "(unreachable)";
    char host[PATH_MAX];

    int length = call_descriptor_path(call, AT_FDCWD, host, sizeof(host));
    if (length < 0)
        return length;
    if (is_removed(call, host, (size_t)length))
        return -ENOENT;
    int guest_length = dd_guest_name(&call->tracer->view, host, host[1] == '\0' ? 0 : (size_t)length, guest);
    if (guest_length < 0)
        return snprintf(guest, DD_PATH_BUFFER, "%s%s", unreachable, host) + 1;
    if (guest_length == 0)
        memcpy(guest, "/", sizeof("/"));
    return guest_length == 0 ? (long)sizeof("/") : guest_length + 1;
}

void getcwd_enter(struct call *call) {
    char guest[DD_PATH_BUFFER];

    long size = guest_cwd(call, guest);
    if (size > PATH_MAX)
        size = -ENAMETOOLONG;
    else if (size > 0 && (uint64_t)size > call_argument(call, 1))
        size = -ERANGE;
    if (size > 0 && memory_write(call_tid(call), call_argument(call, 0), guest, (size_t)size) != 0)
        size = -EFAULT;
    call_answer(call, size);
}

void chroot_enter(struct call *call) {
    char path[PATH_MAX];
    struct dd_result result;
    struct stat status;

    int error = memory_read_string(call_tid(call), call_argument(call, 0), path, sizeof(path));
    if (error >= 0)
        error = call_resolve(call, -1, path, DD_FOLLOW, &result);
    if (error == 0 && stat(result.host, &status) != 0)
        error = -errno;
    if (error == 0 && !S_ISDIR(status.st_mode))
        error = -ENOTDIR;
    if (error == 0 && (result.outside || result.guest_length != 0 || !identity_is_root(call->tracee)))
        error = -EPERM;
    call_answer(call, error);
}
