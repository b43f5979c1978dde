/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Programs that run may not be written to.
 *
 * Rules of this file
 *  - The kernel holds writers off the file that it has executed, and that is the loader. So what a process really runs
 *    is asked of its own struct dd_info.
 *  - Asked last, as the kernel does: who may not write gets EACCES from it.
 *  - Only files that anybody may execute are looked at closer, so usual writes cost one stat, new files none.
 *  - Linux 6.11 and 6.12 let writers in (commits 2a010c412853, and 3b832035387f that took it back).
 *  - Not seen: processes of other sessions.
 */
#define _GNU_SOURCE
#include "text_busy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "abi.h"
#include "call.h"
#include "exec_info.h"
#include "exec_rights.h"
#include "memory.h"
#include "numbers.h"
#include "path_calls.h"
#include "tracer.h"
#include "translate.h"

static bool kernel_lets_writers_in(void) {
    struct utsname kernel;
    unsigned major = 0, minor = 0;

    return uname(&kernel) == 0 && sscanf(kernel.release, "%u.%u", &major, &minor) == 2 && major == 6 &&
           (minor == 11 || minor == 12);
}

static bool writes(const struct call *call, const struct path_call *row) {
    uint64_t flags = path_flags(call, &row->paths[0]);

    if (row->paths[0].lookup == CREATES || row->number == __NR_truncate)
        return true;
    return row->paths[0].lookup == OPEN_FLAGS && (flags & O_PATH) == 0 &&
           ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0);
}

struct search {
    uint64_t device, inode;
    bool found;
};

static bool is_of(const struct dd_info *info, const struct search *search) {
    return info->magic == DD_INFO_MAGIC && info->program_device == search->device &&
           info->program_inode == search->inode;
}

/* The kernel holds writers off from the entry of execve on, and others may know of an exec before its event is seen
 * here. */
static void look_at(struct tracee *tracee, void *context) {
    struct search *search = context;
    struct dd_info info;

    if (search->found || (tracee->exec && (search->found = is_of(&tracee->exec->info, search))))
        return;
    if ((tracee->tgid == 0 || tracee->tgid == tracee->tid) &&
        memory_read(tracee->tid, DD_LOADER_INFO, &info, offsetof(struct dd_info, pool)) == 0)
        search->found = is_of(&info, search);
}

static bool may_write(const struct call *call, const char *host) {
    struct rights own;

    rights_borrow(call->tracee, &own);
    int descriptor = open(host, O_WRONLY | O_NOFOLLOW | O_CLOEXEC); /* access(2) asks with other ids */
    rights_return(&own);
    if (descriptor < 0)
        return false;
    close(descriptor);
    return true;
}

bool text_is_busy(const struct call *call, const struct path_call *row, const struct dd_result *result) {
    struct stat status;

    if (!writes(call, row) || result->missing || stat(result->host, &status) != 0 || !S_ISREG(status.st_mode) ||
        (status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0)
        return false;
    struct search search = {.device = status.st_dev, .inode = status.st_ino};
    tracee_each(look_at, &search);
    return search.found && may_write(call, result->host) && !kernel_lets_writers_in();
}
