/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The records of all threads, by thread id.
 */
#define _GNU_SOURCE
#include "tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi.h"
#include "exec.h"
#include "identity.h"
#include "memory.h"
#include "slots.h"

enum { BUCKETS = 1024 }; /* thread ids are handed out one after another: their low bits spread */

static struct tracee *buckets[BUCKETS];

static struct tracee **bucket_of(pid_t tid) {
    return &buckets[(unsigned)tid % BUCKETS];
}

static struct tracee *find(pid_t tid) {
    struct tracee *tracee = *bucket_of(tid);

    while (tracee != NULL && tracee->tid != tid)
        tracee = tracee->next;
    return tracee;
}

struct tracee *tracee_get(pid_t tid) {
    struct tracee *tracee = find(tid);

    if (tracee != NULL)
        return tracee;
    tracee = calloc(1, sizeof(*tracee));
    if (tracee == NULL)
        abort(); /* without a record of it a thread cannot be let go on; EXITKILL ends all */
    tracee->tid = tid;
    tracee->next = *bucket_of(tid);
    *bucket_of(tid) = tracee;
    return tracee;
}

static struct tracee *take_out(pid_t tid) {
    struct tracee **at = bucket_of(tid);

    while (*at != NULL && (*at)->tid != tid)
        at = &(*at)->next;
    struct tracee *tracee = *at;
    if (tracee != NULL)
        *at = tracee->next;
    return tracee;
}

void tracee_drop(pid_t tid) {
    struct tracee *tracee = take_out(tid);

    if (tracee == NULL)
        return;
    tracee_end_call(tracee);
    exec_forget(tracee);
    identity_forget(tracee);
    free(tracee);
}

struct tracee *tracee_take_over(pid_t tid, pid_t former_tid) {
    struct tracee *tracee = take_out(former_tid);

    tracee_drop(tid);
    if (tracee == NULL)
        return tracee_get(tid);
    tracee->tid = tid;
    tracee->tgid = tid;
    tracee->next = *bucket_of(tid);
    *bucket_of(tid) = tracee;
    return tracee;
}

void tracee_each(void (*visit)(struct tracee *tracee, void *context), void *context) {
    for (size_t n = 0; n < BUCKETS; n++)
        for (struct tracee *tracee = buckets[n], *next; tracee != NULL; tracee = next) {
            next = tracee->next;
            visit(tracee, context);
        }
}

bool tracee_keep(struct tracee *tracee, int descriptor) {
    if (tracee->kept_count == sizeof(tracee->kept) / sizeof(tracee->kept[0]))
        return false;
    tracee->kept[tracee->kept_count++] = descriptor;
    return true;
}

void tracee_end_call(struct tracee *tracee) {
    slots_free(tracee);
    while (tracee->kept_count > 0)
        close(tracee->kept[--tracee->kept_count]);
    free(tracee->bytes);
    tracee->bytes = NULL;
    tracee->in_call = false;
    tracee->at_exit = NULL;
}

pid_t tracee_tgid(struct tracee *tracee) {
    char name[64], text[512];

    if (tracee->tgid != 0)
        return tracee->tgid;
    tracee->tgid = tracee->tid;
    snprintf(name, sizeof(name), "/proc/%d/status", (int)tracee->tid);
    int descriptor = open(name, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return tracee->tgid;
    ssize_t length = read(descriptor, text, sizeof(text) - 1);
    close(descriptor);
    text[length > 0 ? length : 0] = '\0';
    const char *line = strstr(text, "\nTgid:");
    if (line != NULL)
        tracee->tgid = (pid_t)strtol(line + strlen("\nTgid:"), NULL, 10);
    return tracee->tgid;
}

int tracee_guest_exe(pid_t pid, char *buffer, size_t size) {
    struct dd_info info;

    int error = memory_read(pid, DD_LOADER_INFO, &info, offsetof(struct dd_info, pool));
    if (error != 0 || info.magic != DD_INFO_MAGIC || info.exe_at >= sizeof(info.pool))
        return -ESRCH;
    return memory_read_string(pid, DD_LOADER_INFO + offsetof(struct dd_info, pool) + info.exe_at, buffer, size);
}
