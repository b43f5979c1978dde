/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the loader will be told: struct dd_info.
 *
 * Rules of this file
 *  - Only the used part of the pool is written: each page of it costs the new image a page fault.
 *  - A file without a path of its own is opened by the loader through procfs and the tracer's descriptor. That stays
 *    open until the thread's next exit stop, its next execve or its end (exec_forget): by then its loader is done.
 */
#define _GNU_SOURCE
#include "exec_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

/* Offset of the text in the pool; 0: it does not fit. */
static uint32_t put(struct pending_exec *pending, const char *text) {
    size_t size = strlen(text) + 1, at = pending->used;

    if (size > DD_POOL_SIZE - at)
        return 0;
    memcpy(pending->info.pool + at, text, size);
    pending->used = at + size;
    return (uint32_t)at;
}

/* How the loader finds the file. */
static uint32_t put_file(struct pending_exec *pending, int *kept, struct exec_file *file) {
    char name[64];

    if (!file->by_descriptor)
        return put(pending, file->host);
    snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)getpid(), file->descriptor);
    *kept = file->descriptor;
    file->descriptor = -1;
    return put(pending, name);
}

struct pending_exec *exec_info_make(const struct tracer *tracer, struct exec_file *program,
                                    struct exec_file *interpreter, const char *execfn, const char *comm) {
    struct pending_exec *pending = malloc(sizeof(*pending));
    struct dd_info *info;
    struct stat status;
    bool complete;

    if (!pending)
        return NULL;
    info = &pending->info;
    memset(info, 0, offsetof(struct dd_info, pool));
    pending->kept[0] = pending->kept[1] = -1;
    pending->used = DD_POOL_LOADER; /* 0 says "none" */
    info->pool[0] = '\0';
    info->magic = DD_INFO_MAGIC;
    info->abi_version = DD_ABI_VERSION;
    if (fstat(program->descriptor, &status) == 0) {
        info->program_device = status.st_dev;
        info->program_inode = status.st_ino;
    }
    complete = put(pending, tracer->loader) == DD_POOL_LOADER;
    info->program_at = put_file(pending, &pending->kept[0], program);
    info->interpreter_at = interpreter ? put_file(pending, &pending->kept[1], interpreter) : 0;
    info->exe_at = put(pending, program->guest);
    info->execfn_at = put(pending, execfn);
    info->epoch_at = tracer->epoch_path[0] ? put(pending, tracer->epoch_path) : 0;
    strncpy(info->comm, comm, sizeof(info->comm) - 1);
    memcpy(info->key, tracer->key, sizeof(info->key));
    complete = complete && info->program_at && info->exe_at && info->execfn_at && (!interpreter || info->interpreter_at) &&
               (!tracer->epoch_path[0] || info->epoch_at);
    if (complete)
        return pending;
    exec_info_free(pending);
    return NULL;
}

int exec_info_write(const struct pending_exec *pending, pid_t tid) {
    return memory_write(tid, DD_LOADER_INFO, &pending->info, offsetof(struct dd_info, pool) + pending->used);
}

void exec_info_free(struct pending_exec *pending) {
    for (int n = 0; n < 2; n++)
        if (pending->kept[n] >= 0)
            close(pending->kept[n]);
    free(pending);
}
