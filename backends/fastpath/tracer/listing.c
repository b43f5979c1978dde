/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Listings of folders that have mount points which the host's folder lacks.
 *
 * Rules of this file
 *  - A mount namespace cannot have such mount points; whoever sets one up makes them first. Here nothing is made in the
 *    rootfs: the names are put in front of the folder's own, when it is read from its start.
 *  - Nothing is remembered: at position 0 the kernel is given the rest of the caller's buffer, and the names are put
 *    before what it wrote. Their d_off is the start, so whoever seeks to one of these entries begins anew.
 *  - A buffer too small for the names and one of the folder's own is left to the kernel.
 *  - Listings are traced only where there is such a mount point.
 */
#define _GNU_SOURCE
#include "listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "call.h"
#include "memory.h"
#include "numbers.h"
#include "tracer.h"

enum { ENTRY_MAX = 280, NAMES_MAX = 16 * 1024 };

/* struct linux_dirent64 and struct linux_dirent (getdents(2)): the older has the type in its last byte. */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t size;
    char rest[];
};

struct listing {
    const struct tracer *tracer;
    bool is_old; /* getdents */
    uint16_t used;
    char bytes[NAMES_MAX];
};

/* The last component of a bind's guest path, if that lies in the folder of this guest path; else NULL. */
static const char *name_in(const struct dd_bind *bind, const char *folder, size_t length) {
    if (bind->guest_length <= length + 1 || memcmp(bind->guest, folder, length) != 0 || bind->guest[length] != '/')
        return NULL;
    const char *name = bind->guest + length + 1;
    return strchr(name, '/') == NULL ? name : NULL;
}

static void add(struct listing *listing, const char *name, const struct stat *status) {
    size_t head = offsetof(struct entry, rest), length = strlen(name);
    size_t size = (head + 1 + length + 1 + 7) / 8 * 8;
    struct entry entry = {.inode = status->st_ino, .next = 0, .size = (uint16_t)size};
    char type = S_ISDIR(status->st_mode) ? DT_DIR : DT_REG;

    if (listing->used + size > sizeof(listing->bytes))
        return;
    char *at = listing->bytes + listing->used;
    memset(at, 0, size);
    memcpy(at, &entry, head);
    at[listing->is_old ? size - 1 : head] = type;
    memcpy(at + head + (listing->is_old ? 0 : 1), name, length);
    listing->used += (uint16_t)size;
}

/* The names that the folder lacks. */
static void collect(struct listing *listing, int folder, const char *guest, size_t guest_length) {
    const struct dd_view *view = &listing->tracer->view;
    struct stat status;

    for (size_t n = 0; n < view->count; n++) {
        const char *name = name_in(&view->binds[n], guest, guest_length);
        if (name != NULL && fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 &&
            stat(view->binds[n].host_length > 0 ? view->binds[n].host : "/", &status) == 0)
            add(listing, name, &status);
    }
}

/* Position of an open file; -1: nobody can tell. */
static long long position_of(const struct call *call, int descriptor) {
    char name[64], text[64];

    snprintf(name, sizeof(name), "/proc/%d/fdinfo/%d", (int)call_tid(call), descriptor);
    int file = open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t length = read(file, text, sizeof(text) - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    return strncmp(text, "pos:", strlen("pos:")) == 0 ? strtoll(text + strlen("pos:"), NULL, 10) : -1;
}

static void put_in_front(struct call *call) {
    struct tracee *tracee = call->tracee;
    long result = (long)call->registers.result;

    if (result <= 0)
        return;
    if (memory_write(call_tid(call), call_argument(call, 1), tracee->bytes, tracee->byte_count) == 0)
        call->registers.result = (uint64_t)(result + (long)tracee->byte_count);
}

/* Fills the listing for the folder of this descriptor. */
static void look(const struct call *call, int descriptor, struct listing *listing) {
    char host[PATH_MAX], guest[DD_PATH_BUFFER], name[64];

    int length = call_descriptor_path(call, descriptor, host, sizeof(host));
    if (length <= 0 || host[0] != '/')
        return;
    int guest_length = dd_guest_name(&call->tracer->view, host, length == 1 ? 0 : (size_t)length, guest);
    if (guest_length < 0)
        return;
    call_descriptor_name(call, descriptor, name, sizeof(name));
    int folder = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    collect(listing, folder, guest, (size_t)guest_length);
    close(folder);
}

void listing_enter(struct call *call) {
    int descriptor = (int)call_argument(call, 0);
    uint32_t room = (uint32_t)call_argument(call, 2);
    struct listing listing; /* large: not cleared as a whole */

    listing.tracer = call->tracer;
    listing.is_old = call->number != __NR_getdents64;
    listing.used = 0;
    look(call, descriptor, &listing);
    if (listing.used == 0 || room < (uint32_t)listing.used + ENTRY_MAX || position_of(call, descriptor) != 0)
        return;
    char *bytes = malloc(listing.used);
    if (bytes == NULL)
        return;
    memcpy(bytes, listing.bytes, listing.used);
    call->tracee->bytes = bytes;
    call->tracee->byte_count = listing.used;
    call_set_argument(call, 1, call_argument(call, 1) + listing.used);
    call_set_argument(call, 2, room - listing.used);
    call_at_exit(call, put_in_front);
}

bool listing_is_needed(const struct tracer *tracer) {
    const struct dd_view *view = &tracer->view;
    struct stat status;

    for (size_t n = 0; n < view->count; n++) {
        const struct dd_bind *bind = &view->binds[n];
        int parent = view->parent[n];
        char host[DD_PATH_BUFFER];
        if (parent < 0 || parent == (int)n)
            continue;
        const struct dd_bind *above = &view->binds[parent];
        snprintf(host, sizeof(host), "%s%s", above->host, bind->guest + above->guest_length);
        if (lstat(host, &status) != 0)
            return true;
    }
    return false;
}
