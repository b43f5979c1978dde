/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Emulated user and group ids: what a guest is told about itself and about who owns what.
 *
 * Rules of this file
 *  - The kernel's ids never change: set*id is answered here, by the rules of credentials(7) with uid 0 as the
 *    privilege.
 *  - Of files only the caller's own are mapped: what belongs to the real ids is shown as the wanted ids', the rest as
 *    it is.
 *  - Whoever is 0 inside may give files away: that is pretended (-0), as nothing else could be done. Others get the
 *    real ids set for their own, and EPERM for anything else.
 *  - Each thread has its ids, as in the kernel; inherited_ids.c hands them on.
 */
#define _GNU_SOURCE
#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi.h"
#include "call.h"
#include "host_path.h"
#include "memory.h"
#include "numbers.h"
#include "options.h"
#include "path_calls.h"
#include "query.h"
#include "../session_page.h"

enum { MOST_GROUPS = 64 };

struct id_set {
    uint32_t real, effective, saved, fs;
};

struct ids {
    struct id_set user, group;
    uint32_t group_count;
    uint32_t groups[MOST_GROUPS];
};

static const uint32_t unchanged = (uint32_t)-1;

static struct {
    bool on;
    uint32_t uid, gid;           /* as wanted */
    uint32_t real_uid, real_gid; /* as they are */
} emulation;

void identity_start(const struct options *options) {
    emulation.real_uid = geteuid();
    emulation.real_gid = getegid();
    emulation.uid = options->uid;
    emulation.gid = options->gid;
    emulation.on = options->has_ids && (emulation.uid != emulation.real_uid || emulation.gid != emulation.real_gid);
}

bool identity_emulated(void) {
    return emulation.on;
}

static struct ids *ids_of(struct tracee *tracee) {
    if (tracee->ids != NULL)
        return tracee->ids;
    tracee->ids = calloc(1, sizeof(*tracee->ids));
    if (tracee->ids == NULL)
        abort(); /* a process must not run on under ids that are not known */
    *tracee->ids = (struct ids){
        .user = {emulation.uid, emulation.uid, emulation.uid, emulation.uid},
        .group = {emulation.gid, emulation.gid, emulation.gid, emulation.gid},
        .group_count = 1,
        .groups = {emulation.gid},
    };
    return tracee->ids;
}

void identity_inherit(struct tracee *child, struct tracee *parent) {
    struct ids *ids = ids_of(child);

    if (parent != NULL)
        *ids = *ids_of(parent);
}

bool identity_same(const struct tracee *one, const struct tracee *other) {
    return memcmp(one->ids, other->ids, sizeof(*one->ids)) == 0;
}

void identity_exec(struct tracee *tracee) {
    if (!emulation.on)
        return;
    struct ids *ids = ids_of(tracee);
    ids->user.saved = ids->user.fs = ids->user.effective;
    ids->group.saved = ids->group.fs = ids->group.effective;
}

void identity_tell(struct tracee *tracee, struct dd_info *info) {
    if (!emulation.on)
        return;
    const struct ids *ids = ids_of(tracee);
    info->has_ids = 1;
    info->uid = ids->user.real;
    info->euid = ids->user.effective;
    info->gid = ids->group.real;
    info->egid = ids->group.effective;
}

void identity_tell_session(struct dd_session *session) {
    session->has_ids = emulation.on;
    session->real_uid = emulation.real_uid;
    session->real_gid = emulation.real_gid;
    session->uid = emulation.uid;
    session->gid = emulation.gid;
}

void identity_forget(struct tracee *tracee) {
    free(tracee->ids);
    tracee->ids = NULL;
}

bool identity_is_root(struct tracee *tracee) {
    return emulation.on ? ids_of(tracee)->user.effective == 0 : geteuid() == 0;
}

void identity_map_owner(struct tracee *tracee, uint32_t *uid, uint32_t *gid) {
    (void)tracee;
    if (!emulation.on)
        return;
    if (*uid == emulation.real_uid)
        *uid = emulation.uid;
    if (*gid == emulation.real_gid)
        *gid = emulation.gid;
}

/* ---- set*id ------------------------------------------------------------------------------------------------------ */

static bool is_one_of(uint32_t id, const struct id_set *set) {
    return id == set->real || id == set->effective || id == set->saved;
}

static long set_id(struct id_set *set, bool privileged, uint32_t id) {
    if (id == unchanged)
        return -EINVAL;
    if (privileged)
        set->real = set->saved = id;
    else if (id != set->real && id != set->saved)
        return -EPERM;
    set->effective = set->fs = id;
    return 0;
}

static long set_real_effective(struct id_set *set, bool privileged, uint32_t real, uint32_t effective) {
    struct id_set next = *set;

    if (!privileged && real != unchanged && real != set->real && real != set->effective)
        return -EPERM;
    if (!privileged && effective != unchanged && !is_one_of(effective, set))
        return -EPERM;
    if (real != unchanged)
        next.real = real;
    if (effective != unchanged)
        next.effective = effective;
    if (real != unchanged || (effective != unchanged && effective != set->real))
        next.saved = next.effective;
    next.fs = next.effective;
    *set = next;
    return 0;
}

static bool is_kept(uint32_t wanted, uint32_t id) {
    return wanted == unchanged || wanted == id;
}

static long set_all_three(struct id_set *set, bool privileged, const uint32_t wanted[3]) {
    uint32_t *const fields[3] = {&set->real, &set->effective, &set->saved};

    /* A call that changes nothing leaves the fourth id alone too (__sys_setresuid). */
    if (is_kept(wanted[0], set->real) && is_kept(wanted[1], set->effective) && is_kept(wanted[1], set->fs) &&
        is_kept(wanted[2], set->saved))
        return 0;
    for (int n = 0; n < 3; n++)
        if (!privileged && wanted[n] != unchanged && !is_one_of(wanted[n], set))
            return -EPERM;
    for (int n = 0; n < 3; n++)
        if (wanted[n] != unchanged)
            *fields[n] = wanted[n];
    set->fs = set->effective;
    return 0;
}

static long set_fs(struct id_set *set, bool privileged, uint32_t id) {
    uint32_t former = set->fs;

    if (id != unchanged && (privileged || id == set->fs || is_one_of(id, set)))
        set->fs = id;
    return (long)former;
}

static long set_groups(const struct call *call, struct ids *ids, bool privileged) {
    uint32_t count = (uint32_t)call_argument(call, 0);

    if (!privileged)
        return -EPERM;
    if (count > MOST_GROUPS)
        return -EINVAL;
    if (count > 0 && memory_read(call_tid(call), call_argument(call, 1), ids->groups, count * sizeof(uint32_t)) != 0)
        return -EFAULT;
    ids->group_count = count;
    return 0;
}

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

static long get_groups(const struct call *call, const struct ids *ids) {
    int room = (int)call_argument(call, 0);

    if (room < 0)
        return -EINVAL;
    if (room == 0)
        return (long)ids->group_count;
    if ((uint32_t)room < ids->group_count)
        return -EINVAL;
    int error = memory_write(call_tid(call), call_argument(call, 1), ids->groups, ids->group_count * sizeof(uint32_t));
    return error != 0 ? error : (long)ids->group_count;
}

static long get_all_three(const struct call *call, const struct id_set *set) {
    const uint32_t values[3] = {set->real, set->effective, set->saved};

    for (int n = 0; n < 3; n++)
        if (memory_write(call_tid(call), call_argument(call, n), &values[n], sizeof(values[n])) != 0)
            return -EFAULT;
    return 0;
}

static void map_peer(struct call *call) {
    struct ucred peer;

    if (call->registers.result != 0)
        return;
    if (memory_read(call_tid(call), call_argument(call, 3), &peer, sizeof(peer)) != 0)
        return;
    identity_map_owner(call->tracee, &peer.uid, &peer.gid);
    if (memory_write(call_tid(call), call_argument(call, 3), &peer, sizeof(peer)) != 0)
        call->registers.result = -EFAULT;
}

/* ---- owners of files --------------------------------------------------------------------------------------------- */

static bool is_own_group(const struct ids *ids, uint32_t gid) {
    for (uint32_t n = 0; n < ids->group_count; n++)
        if (ids->groups[n] == gid)
            return true;
    return gid == ids->group.fs;
}

/* The arguments that hold uid and gid start at `first`. True: the call is answered. */
static bool change_owner(struct call *call, int first, long exists) {
    const struct ids *ids = ids_of(call->tracee);
    uint32_t uid = (uint32_t)call_argument(call, first);
    uint32_t gid = (uint32_t)call_argument(call, first + 1);

    if (exists != 0 || ids->user.fs == 0) {
        call_answer(call, exists);
        return true;
    }
    if ((uid != unchanged && uid != ids->user.fs) || (gid != unchanged && !is_own_group(ids, gid))) {
        call_answer(call, -EPERM);
        return true;
    }
    if (uid != unchanged)
        call_set_argument(call, first, emulation.real_uid);
    if (gid != unchanged)
        call_set_argument(call, first + 1, emulation.real_gid);
    return false;
}

static long descriptor_exists(const struct call *call) {
    char name[64];
    struct stat status;

    call_descriptor_name(call, (int)call_argument(call, 0), name, sizeof(name));
    return stat(name, &status) == 0 ? 0 : -EBADF;
}

bool identity_change_owner(struct call *call, const struct path_call *row, const struct dd_result *result) {
    struct stat status;
    int directory;
    const char *path;

    if (!emulation.on)
        return false;
    long exists = host_path_open(result->host, &directory, &path);
    if (exists == 0) {
        exists = fstatat(directory, path, &status, result->magic ? 0 : AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
        host_path_close(directory);
    }
    return change_owner(call, row->paths[0].dirfd != 0 ? 2 : 1, exists);
}

void identity_change_descriptor(struct call *call, const struct path_call *row) {
    if (!emulation.on)
        return;
    if ((row->traits & CHANGES_OWNER) != 0 && row->paths[0].dirfd != 0 && (call_argument(call, 4) & AT_EMPTY_PATH) != 0)
        change_owner(call, 2, descriptor_exists(call));
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

static long answer(const struct call *call, struct ids *ids) {
    bool privileged = ids->user.effective == 0;
    const uint32_t arguments[3] = {
        (uint32_t)call_argument(call, 0),
        (uint32_t)call_argument(call, 1),
        (uint32_t)call_argument(call, 2),
    };

    switch (call->number) {
    case __NR_getuid:
        return (long)ids->user.real;
    case __NR_geteuid:
        return (long)ids->user.effective;
    case __NR_getgid:
        return (long)ids->group.real;
    case __NR_getegid:
        return (long)ids->group.effective;
    case __NR_getresuid:
        return get_all_three(call, &ids->user);
    case __NR_getresgid:
        return get_all_three(call, &ids->group);
    case __NR_getgroups:
        return get_groups(call, ids);
    case __NR_setuid:
        return set_id(&ids->user, privileged, arguments[0]);
    case __NR_setgid:
        return set_id(&ids->group, privileged, arguments[0]);
    case __NR_setreuid:
        return set_real_effective(&ids->user, privileged, arguments[0], arguments[1]);
    case __NR_setregid:
        return set_real_effective(&ids->group, privileged, arguments[0], arguments[1]);
    case __NR_setresuid:
        return set_all_three(&ids->user, privileged, arguments);
    case __NR_setresgid:
        return set_all_three(&ids->group, privileged, arguments);
    case __NR_setfsuid:
        return set_fs(&ids->user, privileged, arguments[0]);
    case __NR_setfsgid:
        return set_fs(&ids->group, privileged, arguments[0]);
    case __NR_setgroups:
        return set_groups(call, ids, privileged);
    default:
        return -ENOSYS;
    }
}

void identity_call(struct call *call) {
    switch (call->number) {
    case __NR_fstat:
        query_answer_descriptor(call);
        break;
    case __NR_fchown:
        change_owner(call, 1, descriptor_exists(call));
        break;
    case __NR_getsockopt:
        call_at_exit(call, map_peer);
        break;
    case __NR_capset: /* the kernel's alone: it can only drop what the guest has not */
        break;
    default:
        call_answer(call, answer(call, ids_of(call->tracee)));
        break;
    }
}
