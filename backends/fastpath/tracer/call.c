/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One system call at its seccomp stop: its arguments, its answer, its replacement.
 */
#define _GNU_SOURCE
#include "call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi.h"
#include "memory.h"
#include "slots.h"
#include "start.h"
#include "tracer.h"
#include "unnamed.h"

enum { ALIGNMENT = 16 };

static size_t aligned(size_t size) {
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

uint64_t call_argument(const struct call *call, int n) {
    return call->registers.arguments[n];
}

pid_t call_tid(const struct call *call) {
    return call->tracee->tid;
}

void call_answer(struct call *call, long result) {
    call->registers = call->tracee->before;
    registers_skip(&call->registers, result);
    call->exit_stop = false;
}

uint64_t call_scratch(struct call *call, size_t size) {
    if (!call->tracer->loaded)
        return start_scratch(size);
    uint64_t address = slots_take(call->tracee, size);
    call->starved = address == 0 && size <= SLOTS_SIZE;
    return address;
}

void call_set_number(struct call *call, long number) {
    call->registers.number = number;
    call->exit_stop = true;
}

void call_set_argument(struct call *call, int n, uint64_t value) {
    call->registers.arguments[n] = value;
    call->exit_stop = true;
}

void call_at_exit(struct call *call, exit_work *work) {
    call->tracee->at_exit = work;
    call->exit_stop = true;
}

/* All bytes go over in one write. The buffer holds what the largest caller gives: two paths. */
int call_replace(struct call *call, const struct replacement *replacements, size_t count) {
    char bytes[2 * (PATH_MAX + ALIGNMENT)];
    size_t used = 0;

    for (size_t n = 0; n < count; n++) {
        const struct replacement *one = &replacements[n];
        if (one->bytes == NULL)
            continue;
        if (used + aligned(one->size) > sizeof(bytes))
            return -ENAMETOOLONG;
        memcpy(bytes + used, one->bytes, one->size);
        used += aligned(one->size);
    }
    uint64_t address = 0;
    if (used > 0) {
        address = call_scratch(call, used);
        if (address == 0)
            return -ENOMEM;
        int error = memory_write(call_tid(call), address, bytes, used);
        if (error != 0)
            return error;
    }
    for (size_t n = 0; n < count; n++) {
        const struct replacement *one = &replacements[n];
        call_set_argument(call, one->argument, one->bytes == NULL ? one->value : address);
        if (one->bytes != NULL)
            address += aligned(one->size);
    }
    return 0;
}

int call_descriptor_path(const struct call *call, int descriptor, char *host, size_t size) {
    char name[64];

    call_descriptor_name(call, descriptor, name, sizeof(name));
    ssize_t length = readlink(name, host, size - 1);
    if (length < 0)
        return errno == ENOENT ? -EBADF : -errno;
    host[length] = '\0';
    return (int)length;
}

void call_descriptor_name(const struct call *call, int descriptor, char *name, size_t size) {
    if (descriptor == AT_FDCWD)
        snprintf(name, size, "/proc/%d/cwd", (int)call_tid(call));
    else
        snprintf(name, size, "/proc/%d/fd/%d", (int)call_tid(call), descriptor);
}

static pid_t ask_tgid(const struct dd_process *process) {
    return tracee_tgid(process->context);
}

static int ask_guest_exe(const struct dd_process *process, pid_t pid, char *buffer, size_t size) {
    (void)process;
    return tracee_guest_exe(pid, buffer, size);
}

struct dd_process call_process(const struct call *call) {
    return (struct dd_process){
        .tid = call->tracee->tid,
        .tgid = call->tracee->tgid,
        .tgid_of = ask_tgid,
        .guest_exe = ask_guest_exe,
        .context = call->tracee,
    };
}

int call_resolve(const struct call *call, int dirfd_argument, const char *path, enum dd_mode mode,
                 struct dd_result *result) {
    int descriptor = dirfd_argument < 0 ? AT_FDCWD : (int)call_argument(call, dirfd_argument);
    char base[PATH_MAX + sizeof(" (deleted)")];
    struct dd_process process = call_process(call);

    if (path[0] == '/' || path[0] == '\0')
        return dd_resolve_cached(&call->tracer->cache, &call->tracer->view, &process, NULL, path, mode, result);
    int length = call_descriptor_path(call, descriptor, base, sizeof(base));
    if (length == -EBADF)
        return length;
    if (length < 0 || base[length - 1] == ')') { /* longer than PATH_MAX, or perhaps removed */
        char name[64];
        call_descriptor_name(call, descriptor, name, sizeof(name));
        bool removed = length > 0 && unnamed_is_removed(name, base, (size_t)length);
        if (length < 0 || (removed && unnamed_leads_up(path)))
            return unnamed_resolve(call, name, path, mode, result);
        if (removed && !unnamed_avoid_namesakes(base, (size_t)length, sizeof(base)))
            return -ENOENT;
    }
    if (base[0] != '/')
        return -ENOTDIR; /* a pipe, a socket */
    return dd_resolve_cached(&call->tracer->cache, &call->tracer->view, &process, base, path, mode, result);
}
