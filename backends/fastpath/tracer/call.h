/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One system call at its seccomp stop: what the caller asks, and what shall become of it.
 *
 * Rules of this file
 *  - A handler does one of: nothing (the kernel runs the call as it stands), call_answer (the kernel does not run it),
 *    call_replace (the kernel runs it with other arguments, and an exit stop gives the caller its own registers back).
 *  - Handlers only change the struct; loop.c writes what has changed and lets the tracee go on.
 *  - Scratch memory is a slot in the loader's own memory, never the guest's stack.
 */
#ifndef DD_TRACER_CALL_H
#define DD_TRACER_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"
#include "resolver/resolver.h"
#include "tracee.h"

struct tracer;

struct call {
    struct tracer *tracer;
    struct tracee *tracee;
    struct registers registers;
    long number;    /* as the caller gave it */
    bool exit_stop; /* the exit stop is wanted */
    bool starved;   /* all scratch memory is in use: the caller makes the call again, until some is free */
};

struct replacement {
    int argument;
    const void *bytes; /* put into scratch memory, the argument points there; NULL: the argument becomes `value` */
    size_t size;       /* with the NUL of a string */
    uint64_t value;
};

uint64_t call_argument(const struct call *call, int n);
pid_t call_tid(const struct call *call);

/* The kernel does not run the call; the caller sees `result` (-errno or a value). */
void call_answer(struct call *call, long result);

/* Run the call with other arguments. 0, or -errno after which nothing has changed (the handler answers with it). At
 * most two paths' worth of bytes. */
int call_replace(struct call *call, const struct replacement *replacements, size_t count);

/* The parts of call_replace, for what it cannot say: pointers among the bytes, another call in place of this one.
 * call_scratch: the address of `size` bytes, held until the exit stop; 0: there are none (answer -ENOMEM or -E2BIG). A
 * second demand in one call replaces the first. Where 0 only means "not now", the answer is not looked at (`starved`).
 * Number and arguments are put back at the exit stop. */
uint64_t call_scratch(struct call *call, size_t size);
void call_set_argument(struct call *call, int n, uint64_t value);
void call_set_number(struct call *call, long number);

/* `work` is done at the exit stop. */
void call_at_exit(struct call *call, exit_work *work);

/* A path argument of this call in host terms. `dirfd_argument`: the argument that holds the directory's descriptor, or
 * -1 for the working directory. 0 or -errno, as dd_resolve says it; -EBADF, -ENOTDIR for the descriptor. */
int call_resolve(const struct call *call, int dirfd_argument, const char *path, enum dd_mode mode,
                 struct dd_result *result);

/* What procfs calls a descriptor, or AT_FDCWD, of the caller: "/proc/TID/fd/N", "/proc/TID/cwd"; and what that link
 * says: length, or -errno (-EBADF). A removed file's path ends in " (deleted)". */
void call_descriptor_name(const struct call *call, int descriptor, char *name, size_t size);
int call_descriptor_path(const struct call *call, int descriptor, char *host, size_t size);

/* What the resolver is told about the caller. */
struct dd_process call_process(const struct call *call);

#endif
