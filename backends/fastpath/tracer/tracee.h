/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the tracer keeps of each thread: only what cannot be read from the thread itself.
 *
 * Rules of this file
 *  - A record is made at the first stop of a thread; nothing but emulated ids (identity.c) is read from fork events, so
 *    it does not matter which of parent and child stops first.
 *  - What fork must copy lives in the tracee's own memory (struct dd_info, abi.h).
 */
#ifndef DD_TRACER_TRACEE_H
#define DD_TRACER_TRACEE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "arch.h"

struct call;
struct ids;          /* identity.c */
struct pending_exec; /* exec.c */

/* What is done at the exit stop of a call. It sees the caller's own arguments and the result, which it may change. */
typedef void exit_work(struct call *call);

struct tracee {
    pid_t tid;
    pid_t tgid;                /* 0: not asked yet, see tracee_tgid() */
    struct tracee *next;       /* tracee.c */
    bool in_call;              /* an exit stop is to come: what follows is in use */
    struct registers before;   /* as the caller made the call */
    struct registers given;    /* as the kernel runs it */
    exit_work *at_exit;        /* or NULL */
    int unit, unit_count;      /* slots.c: the scratch memory it holds */
    unsigned name_room;        /* sockets.c: room for an address that comes back */
    uint64_t header_copy;      /* datagrams.c: where the kernel writes what it sent */
    char *bytes;               /* listing.c, datagrams.c: what the exit stop needs; freed with the call */
    size_t byte_count;
    int lookup_error;          /* translate.c: to be told once the kernel has judged the rest of the call */
    int kept[8], kept_count;   /* descriptors of the tracer's own that paths of this call go through */
    struct pending_exec *exec; /* exec.c: from the entry of execve to its event */
    struct ids *ids;           /* identity.c; NULL unless ids are emulated */
    bool waits_for_ids;        /* loop.c: stopped until they are known (inherited_ids.c) */
    signed char credentials;   /* credentials.c: 0 not asked, 1 the tracer's, -1 others */
};

struct tracee *tracee_get(pid_t tid);                         /* the record, made if there is none */
void tracee_drop(pid_t tid);                                  /* the thread is gone */
struct tracee *tracee_take_over(pid_t tid, pid_t former_tid); /* a thread's exec: it goes on under its process's id */
pid_t tracee_tgid(struct tracee *tracee);                     /* read once from /proc */
void tracee_each(void (*visit)(struct tracee *tracee, void *context), void *context); /* visit must not drop others */
bool tracee_keep(struct tracee *tracee, int descriptor);      /* until the call ends; false: there is no room */
void tracee_end_call(struct tracee *tracee);                   /* scratch memory and descriptors are free */

/* Guest path of the program that a guest process (`pid` may be a thread) runs: length, or -errno if it is no guest
 * process. */
int tracee_guest_exe(pid_t pid, char *buffer, size_t size);

#endif
