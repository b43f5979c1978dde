/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The session's epoch page: raised before and after each call that renames or removes a directory, or makes, removes or
 * renames a link, the latter before its caller goes on. Without the fast path there is no page and nobody to tell.
 */
#define _GNU_SOURCE
#include "epoch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi.h"
#include "call.h"
#include "path_calls.h"

static uint64_t *epoch;

int epoch_open(int descriptor) {
    static const char empty[DD_EPOCH_SIZE];
    void *page = MAP_FAILED;

    /* Written, not only made that long: where the file system is full, touching the page would be SIGBUS. */
    ssize_t written = write(descriptor, empty, sizeof(empty));
    if (written >= 0 && written != (ssize_t)sizeof(empty))
        errno = ENOSPC;
    if (written == (ssize_t)sizeof(empty) && ftruncate(descriptor, DD_EPOCH_SIZE + DD_SESSION_SIZE) == 0)
        page = mmap(NULL, DD_EPOCH_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    int error = page == MAP_FAILED ? -errno : 0;
    close(descriptor);
    if (error == 0)
        epoch = page;
    return error;
}

bool epoch_concerns(const struct path_call *row, const struct dd_result *result) {
    struct stat status;

    if (epoch == NULL)
        return false;
    if ((row->traits & (RENAMES | LINK_TEXT)) != 0)
        return true;
    if ((row->traits & (REMOVES | LINKS)) == 0)
        return false;
    /* Where it cannot be asked, it is better told once too often. */
    return lstat(result->host, &status) != 0 || S_ISDIR(status.st_mode) || S_ISLNK(status.st_mode);
}

static void bump(void) {
    __atomic_add_fetch(epoch, 1, __ATOMIC_SEQ_CST);
}

static void bump_after(struct call *call) {
    (void)call;
    bump();
}

void epoch_bump_around(struct call *call) {
    bump();
    call_at_exit(call, bump_after);
}
