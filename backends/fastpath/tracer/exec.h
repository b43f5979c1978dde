/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * execve and execveat: the kernel execs the loader, which maps what the guest asked for.
 */
#ifndef DD_TRACER_EXEC_H
#define DD_TRACER_EXEC_H

#include <stdbool.h>
#include <sys/types.h>

struct call;
struct tracee;
struct tracer;

/* At the seccomp stop of execve, or of execveat (`at`): check everything, prepare, let the kernel exec the loader. */
void exec_enter(struct tracer *tracer, struct call *call, bool at);

/* At PTRACE_EVENT_EXEC: write struct dd_info into the new image. The record has been moved already (tracee_take_over)
 * where a thread other than the leader called; `former_tid` is that thread's id. */
void exec_done(struct tracer *tracer, struct tracee *tracee, pid_t former_tid);

/* Release tracee->exec: at the exit stop of a failed call, and when the thread is gone. tracee->exec may be NULL. */
void exec_forget(struct tracee *tracee);

#endif
