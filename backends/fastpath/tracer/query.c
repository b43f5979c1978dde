/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The calls that only ask the file system: one stop, and nothing of the guest's is touched but the result.
 *
 * Rules of this file
 *  - Only for a caller with the tracer's own rights (credentials.c).
 *  - The tracer makes the same call with the same flags on the host path, so that the kernel finds all errors itself.
 *  - struct stat is the kernel's on the 64-bit architectures, in glibc and in musl.
 */
#define _GNU_SOURCE
#include "query.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/stat.h> /* STATX_ATTR_* */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "call.h"
#include "host_path.h"
#include "identity.h"
#include "memory.h"
#include "numbers.h"
#include "resolver/sys.h"
#include "tracer.h"

struct question {
    int directory;
    const char *path;
    bool mount_root;
    bool no_link; /* the answer is IS_LINK where the path is a link */
};

enum { IS_LINK = 1 }; /* no call of these has this result */

static long result_of(long result) {
    return result < 0 ? -errno : result;
}

static long answer_stat(const struct call *call, struct question question, int flags, uint64_t buffer) {
    struct stat status;

    if (question.no_link)
        flags |= AT_SYMLINK_NOFOLLOW;
    long result = result_of(syscall(__NR_newfstatat, question.directory, question.path, &status, flags));
    if (result != 0)
        return result;
    if (question.no_link && S_ISLNK(status.st_mode))
        return IS_LINK;
    identity_map_owner(call->tracee, &status.st_uid, &status.st_gid);
    return memory_write(call_tid(call), buffer, &status, sizeof(status));
}

static long answer_statx(const struct call *call, struct question question, int flags) {
    unsigned mask = (unsigned)call_argument(call, 3);
    struct statx status;

    if (question.no_link)
        flags |= AT_SYMLINK_NOFOLLOW;
    long result = result_of(syscall(__NR_statx, question.directory, question.path, flags, mask, &status));
    if (result != 0)
        return result;
    if (question.no_link && ((status.stx_mask & STATX_TYPE) == 0 || S_ISLNK(status.stx_mode)))
        return IS_LINK;
    identity_map_owner(call->tracee, &status.stx_uid, &status.stx_gid);
    if (question.mount_root)
        status.stx_attributes |= STATX_ATTR_MOUNT_ROOT;
    return memory_write(call_tid(call), call_argument(call, 4), &status, sizeof(status));
}

static long answer(const struct call *call, struct question question) {
    switch (call->number) {
#ifdef __NR_stat
    case __NR_stat:
        return answer_stat(call, question, 0, call_argument(call, 1));
    case __NR_lstat:
        return answer_stat(call, question, AT_SYMLINK_NOFOLLOW, call_argument(call, 1));
    case __NR_access:
        return result_of(syscall(__NR_faccessat, question.directory, question.path, (int)call_argument(call, 1)));
#endif
    case __NR_newfstatat:
        return answer_stat(call, question, (int)call_argument(call, 3), call_argument(call, 2));
    case __NR_statx:
        return answer_statx(call, question, (int)call_argument(call, 2));
    case __NR_faccessat:
        return result_of(syscall(__NR_faccessat, question.directory, question.path, (int)call_argument(call, 2)));
    case __NR_faccessat2:
        return result_of(syscall(__NR_faccessat2, question.directory, question.path, (int)call_argument(call, 2),
                                 (int)call_argument(call, 3)));
    default:
        return -ENOSYS;
    }
}

/* ---- mounts ------------------------------------------------------------------------------------------------------ */

static bool is_mount_root_of_descriptor(const struct call *call, const char *name) {
    char host[PATH_MAX], guest[DD_PATH_BUFFER];

    int length = dd_sys_readlink(name, host, sizeof(host));
    if (length <= 0 || length == (int)sizeof(host) || host[0] != '/')
        return false;
    int guest_length = dd_guest_name(&call->tracer->view, host, length == 1 ? 0 : (size_t)length, guest);
    return guest_length >= 0 && dd_view_mount_at(&call->tracer->view, guest, (size_t)guest_length) >= 0;
}

static bool is_mount_root(const struct call *call, const struct dd_result *result) {
    if (result->magic)
        return is_mount_root_of_descriptor(call, result->host);
    return !result->outside && result->mount >= 0 &&
           call->tracer->view.binds[result->mount].host_length == result->name_length;
}

bool query_asks_for_access(const struct call *call) {
    switch (call->number) {
#ifdef __NR_access
    case __NR_access:
#endif
    case __NR_faccessat:
    case __NR_faccessat2:
        return true;
    default:
        return false;
    }
}

bool query_shows_mount(const struct call *call, const struct dd_result *result) {
    return call->number == __NR_statx && is_mount_root(call, result);
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

static long ask(const struct call *call, const struct dd_result *result, bool no_link) {
    struct question question = {.mount_root = query_shows_mount(call, result), .no_link = no_link};

    long error = host_path_open(result->host, &question.directory, &question.path);
    if (error != 0)
        return error;
    long found = answer(call, question);
    host_path_close(question.directory);
    return found;
}

void query_answer(struct call *call, const struct dd_result *result) {
    call_answer(call, ask(call, result, false));
}

bool query_answer_unless_link(struct call *call, const struct dd_result *result) {
    long found = ask(call, result, true);

    if (found == IS_LINK)
        return false;
    call_answer(call, found);
    return true;
}

bool query_concerns_descriptor(const struct call *call) {
    char name[64];

    if (call->number == __NR_newfstatat)
        return identity_emulated() && (call_argument(call, 3) & AT_EMPTY_PATH) != 0;
    if (call->number != __NR_statx || call_argument(call, 1) == 0 || (call_argument(call, 2) & AT_EMPTY_PATH) == 0)
        return false;
    call_descriptor_name(call, (int)call_argument(call, 0), name, sizeof(name));
    return identity_emulated() || is_mount_root_of_descriptor(call, name);
}

/* The file that procfs leads to, whose link is to be followed whatever the caller's flags say. */
void query_answer_descriptor(struct call *call) {
    const int by_descriptor = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
    char name[64];
    struct question question = {.directory = AT_FDCWD, .path = name};
    long result;

    call_descriptor_name(call, (int)call_argument(call, 0), name, sizeof(name));
    if (call->number == __NR_fstat) {
        result = answer_stat(call, question, 0, call_argument(call, 1));
    } else if (call->number == __NR_statx) {
        question.mount_root = is_mount_root_of_descriptor(call, name);
        result = answer_statx(call, question, (int)call_argument(call, 2) & ~by_descriptor);
    } else {
        result = answer_stat(call, question, (int)call_argument(call, 3) & ~by_descriptor, call_argument(call, 2));
    }
    call_answer(call, result == -ENOENT ? -EBADF : result);
}
