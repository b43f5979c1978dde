/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The one handler of all path calls: read the paths, resolve them, let the kernel run the call on the host's.
 *
 * Rules of this file
 *  - It knows calls by their row only (path_calls.c).
 *  - A path whose own walk by the kernel gives the right file (relative, no link, no bind, no "..") is left alone: no
 *    register is touched and there is no exit stop.
 *  - The kernel looks at flags before it looks for files: where they are unusual, it judges them first.
 */
#define _GNU_SOURCE
#include "translate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "call.h"
#include "credentials.h"
#include "epoch.h"
#include "host_path.h"
#include "identity.h"
#include "memory.h"
#include "mount_points.h"
#include "path_calls.h"
#include "proc_maps.h"
#include "query.h"
#include "text_busy.h"
#include "tracer.h"

uint64_t path_flags(const struct call *call, const struct path_argument *argument) {
    /* Flags are 32 bits wide in all of these calls. */
    return argument->flags != 0 ? (uint32_t)call_argument(call, argument->flags - 1) : 0;
}

static enum dd_mode open_mode(uint64_t flags, const char *path) {
    size_t length = strlen(path);

    if ((flags & O_CREAT) != 0 && (flags & O_PATH) == 0 && ((flags & O_EXCL) != 0 || path[length - 1] == '/'))
        return DD_PARENT;
    return (flags & O_NOFOLLOW) != 0 ? DD_NOFOLLOW : DD_FOLLOW;
}

static enum dd_mode lookup_mode(const struct call *call, const struct path_argument *argument, const char *path) {
    uint64_t flags = path_flags(call, argument);
    bool set = (flags & argument->bit) != 0;

    switch ((enum lookup)argument->lookup) {
    case NOFOLLOW:
        return DD_NOFOLLOW;
    case PARENT:
        return DD_PARENT;
    case OPEN_FLAGS:
        return open_mode(flags, path);
    case CREATES:
        return open_mode(O_CREAT, path);
    case NOFOLLOW_IF:
        return set ? DD_NOFOLLOW : DD_FOLLOW;
    case FOLLOW_IF:
        return set ? DD_FOLLOW : DD_NOFOLLOW;
    case FOLLOW:
    default:
        return DD_FOLLOW;
    }
}

bool path_leads_nowhere(const char *path) {
    return path[0] == '.' && path[strspn(path, "./")] == '\0';
}

enum outcome { NO_PATH, RESOLVED, ANSWERED }; /* or -errno */

/* Whether the last component is a link the answer itself says: one readlink less. NO_PATH: it is one. */
static int answer_unless_link(struct call *call, const char *path, struct dd_result *result) {
    int error = call_resolve(call, -1, path, DD_NOFOLLOW, result);

    if (error != 0)
        return error;
    return query_answer_unless_link(call, result) ? ANSWERED : NO_PATH;
}

/* A removed directory has no name that leads to it: where the tracer itself asks, the caller's hold on it does. */
static void name_removed_by_descriptor(const struct call *call, int dirfd, struct dd_result *result) {
    char name[64];
    struct stat status;

    call_descriptor_name(call, dirfd < 0 ? AT_FDCWD : (int)call_argument(call, dirfd), name, sizeof(name));
    if (stat(name, &status) != 0 || status.st_nlink != 0)
        return;
    result->magic = true;
    result->name_length = strlen(name);
    result->host_length = (size_t)snprintf(result->host, sizeof(result->host), "%s/.", name);
}

static int resolve(struct call *call, const struct path_call *row, int n, struct dd_result *result) {
    const struct path_argument *argument = &row->paths[n];
    uint64_t address = call_argument(call, argument->path - 1);
    char path[PATH_MAX];

    if (address == 0)
        return NO_PATH;
    int length = memory_read_string(call_tid(call), address, path, sizeof(path));
    if (length <= 0)
        return length < 0 ? length : NO_PATH; /* the kernel knows about the empty path */
    enum dd_mode mode = lookup_mode(call, argument, path);
    if ((row->traits & TELLS_TYPE) != 0 && mode == DD_FOLLOW && path[0] == '/' && credentials_same(call->tracee)) {
        int outcome = answer_unless_link(call, path, result);
        if (outcome != NO_PATH)
            return outcome;
    }
    int dirfd = argument->dirfd != 0 ? argument->dirfd - 1 : -1;
    int error = call_resolve(call, dirfd, path, mode, result);
    if (error == 0 && identity_emulated() && !result->changed && path_leads_nowhere(path))
        name_removed_by_descriptor(call, dirfd, result);
    if (error == 0 && mode == DD_PARENT && path_leads_nowhere(path))
        result->changed = false;
    return error != 0 ? error : RESOLVED;
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static bool has_unusual_flags(const struct call *call, const struct path_call *row) {
    for (int n = 0; n < 2 && row->paths[n].path != 0; n++)
        if ((path_flags(call, &row->paths[n]) & ~(uint64_t)(row->paths[n].bit | row->paths[n].usual)) != 0)
            return true;
    return false;
}

/* The kernel found no fault with the rest of the call: the path's own error stands. */
static void put_lookup_error(struct call *call) {
    if (call->registers.result == -ENOENT)
        call->registers.result = call->tracee->lookup_error;
}

static void refuse(struct call *call, const struct path_call *row, int error) {
    static const char nowhere[] = "/proc/self/nowhere/nothing";
    const struct replacement path = {.argument = row->paths[0].path - 1, .bytes = nowhere, .size = sizeof(nowhere)};

    if (!has_unusual_flags(call, row) || call_replace(call, &path, 1) != 0) {
        call_answer(call, error);
        return;
    }
    call->tracee->lookup_error = error;
    call_at_exit(call, put_lookup_error);
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

/* The kernel runs the call on the host's paths, as far as they differ from what it was given. */
static int replace_paths(struct call *call, const struct path_call *row, const struct dd_result results[2],
                         const bool resolved[2]) {
    char buffers[2][PATH_MAX];
    struct replacement replacements[2];
    size_t count = 0;

    for (int n = 0; n < 2; n++) {
        const char *path;
        if (!resolved[n] || !results[n].changed)
            continue;
        int error = host_path_for_caller(call, results[n].host, buffers[n], &path);
        if (error != 0)
            return error;
        replacements[count++] =
            (struct replacement){.argument = row->paths[n].path - 1, .bytes = path, .size = strlen(path) + 1};
    }
    return count == 0 ? 0 : call_replace(call, replacements, count);
}

static bool is_for_tracer(const struct call *call, const struct dd_result *result) {
    if (!result->changed && !identity_emulated() && !query_shows_mount(call, result))
        return false;
    /* procfs lets a process pass where its mode bits do not, in what is the process's own (proc_pid_fd(5)). */
    if (result->caller_dependent && query_asks_for_access(call))
        return false;
    return credentials_same(call->tracee);
}

/* A call that names its file by descriptor alone. */
static void descriptor_call(struct call *call, const struct path_call *row) {
    if (query_concerns_descriptor(call) && credentials_same(call->tracee))
        query_answer_descriptor(call);
    else
        identity_change_descriptor(call, row);
}

/* What the call takes away or gives another name is no longer held. */
static void leave_directories(const struct call *call, const struct path_call *row, const struct dd_result results[2],
                              const bool resolved[2]) {
    bool removes = (row->traits & OF_DIRECTORY) != 0 ||
                   ((row->traits & REMOVES) != 0 && (path_flags(call, &row->paths[0]) & AT_REMOVEDIR) != 0);

    for (int n = 0; n < 2; n++)
        if (resolved[n] && (removes || (row->traits & RENAMES) != 0))
            dd_dir_cache_leave(&call->tracer->cache, results[n].host, results[n].name_length);
}

/* All paths are known: have the call run, or say what it answers. */
static void run(struct call *call, const struct path_call *row, const struct dd_result results[2],
                const bool resolved[2]) {
    int error = 0;

    if (resolved[0] && proc_maps_enter(call, row, &results[0]))
        return;
    if (resolved[0] && text_is_busy(call, row, &results[0]))
        error = -ETXTBSY;
    else if (resolved[0] && (resolved[1] || row->paths[1].path == 0))
        error = mount_points_refuse(call, row, results);
    if (error != 0) {
        refuse(call, row, error);
        return;
    }
    leave_directories(call, row, results, resolved);
    if ((row->traits & CHANGES_OWNER) != 0 && identity_change_owner(call, row, &results[0]))
        return;
    error = replace_paths(call, row, results, resolved);
    if (error != 0)
        call_answer(call, error);
    else if (resolved[0] && epoch_concerns(row, &results[0]))
        epoch_bump_around(call);
}

void translate(struct call *call, const struct path_call *row) {
    struct dd_result results[2];
    bool resolved[2] = {false, false};

    for (int n = 0; n < 2 && row->paths[n].path != 0; n++) {
        int outcome = resolve(call, row, n, &results[n]);
        if (outcome == ANSWERED)
            return;
        if (outcome < 0) {
            refuse(call, row, resolved[0] ? mount_points_first_error(row, &results[0], outcome) : outcome);
            return;
        }
        resolved[n] = outcome == RESOLVED;
    }
    if (!resolved[0] && !resolved[1])
        descriptor_call(call, row);
    else if ((row->traits & QUERY) != 0 && is_for_tracer(call, &results[0]))
        query_answer(call, &results[0]);
    else
        run(call, row, results, resolved);
}
