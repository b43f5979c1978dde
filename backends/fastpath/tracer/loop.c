/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The event loop: one stop after another.
 *
 * Rules of this file
 *  - Tracees are seized (PTRACE_SEIZE): a group stop is told apart from a signal and honoured (PTRACE_LISTEN).
 *  - No PTRACE_O_TRACEEXIT: the end of a thread is told without it. Fork events are asked for since they attach the
 *    child; they are read only where ids are emulated.
 *  - The syscall-exit stop comes before a signal is set up or a call is restarted: with the caller's own arguments back
 *    in place both see the call as it was made.
 *  - A tracee may be killed at any time: whatever ptrace says to that, its end is reported here.
 */
#define _GNU_SOURCE
#include "loop.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "call.h"
#include "dispatch.h"
#include "exec.h"
#include "identity.h"
#include "inherited_ids.h"
#include "options.h"
#include "signals.h"
#include "tracee.h"
#include "tracer.h"

enum { SYSCALL_STOP = SIGTRAP | 0x80 }; /* PTRACE_O_TRACESYSGOOD */

static void go_on(pid_t tid, int number) {
    ptrace(PTRACE_CONT, tid, 0L, (long)number);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void call_stop(struct tracer *tracer, pid_t tid) {
    struct tracee *tracee = tracee_get(tid);
    struct call call = {.tracer = tracer, .tracee = tracee};

    if (registers_get(tid, &call.registers) != 0)
        return;
    call.number = call.registers.number;
    tracee->before = call.registers;
    dispatch(&call);
    if (call.starved) {
        call.registers = tracee->before;
        registers_repeat(&call.registers);
        call.exit_stop = false;
    }
    registers_change(tid, &tracee->before, &call.registers);
    if (call.exit_stop) {
        tracee->in_call = true;
        tracee->given = call.registers;
        ptrace(PTRACE_SYSCALL, tid, 0L, 0L);
        return;
    }
    tracee_end_call(tracee);
    go_on(tid, 0);
}

/* The caller gets its own arguments back, and the kernel what it needs to restart the call as it was made. */
static void put_back(struct tracer *tracer, struct tracee *tracee) {
    struct call call = {.tracer = tracer, .tracee = tracee, .registers = tracee->before};

    call.number = call.registers.number;
    if (tracee->at_exit != NULL && registers_get_result(tracee->tid, &call.registers) == 0) {
        tracee->given.result = call.registers.result;
        tracee->at_exit(&call);
    }
    registers_change(tracee->tid, &tracee->given, &call.registers);
}

static void exit_stop(struct tracer *tracer, pid_t tid) {
    struct tracee *tracee = tracee_get(tid);

    if (tracee->in_call)
        put_back(tracer, tracee);
    exec_forget(tracee); /* an exec that got as far as this has failed */
    tracee_end_call(tracee);
    go_on(tid, 0);
}

/* ---- emulated ids ------------------------------------------------------------------------------------------------ */

static void let_go_on(struct tracee *tracee, void *context) {
    (void)context;
    if (!tracee->waits_for_ids || !inherited_ids_find(tracee))
        return;
    tracee->waits_for_ids = false;
    go_on(tracee->tid, 0);
}

/* A thread has handed its ids on, or will never do it. */
static void ids_may_be_known(void) {
    if (identity_emulated())
        tracee_each(let_go_on, NULL);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void exec_event(struct tracer *tracer, pid_t tid) {
    unsigned long former = (unsigned long)tid;

    ptrace(PTRACE_GETEVENTMSG, tid, 0L, &former);
    struct tracee *tracee = (pid_t)former == tid ? tracee_get(tid) : tracee_take_over(tid, (pid_t)former);
    tracee_end_call(tracee);
    tracee->tgid = tid;
    tracer->loaded = true;
    exec_done(tracer, tracee, (pid_t)former);
    identity_exec(tracee);
    ids_may_be_known();
    go_on(tid, 0);
}

static void fork_event(pid_t tid) {
    unsigned long child_tid;

    if (identity_emulated() && ptrace(PTRACE_GETEVENTMSG, tid, 0L, &child_tid) == 0) {
        inherited_ids_hand_on(tracee_get(tid), (pid_t)child_tid);
        ids_may_be_known();
    }
    go_on(tid, 0);
}

static bool stops_group(int number) {
    return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

/* A group stop; or, with SIGTRAP, the first stop of a new thread and the end of a group stop. */
static void stop_event(const struct tracer *tracer, pid_t tid, int number) {
    struct tracee *tracee = tracee_get(tid);

    if (tid == tracer->main_pid)
        signals_main_stopped(stops_group(number));
    if (stops_group(number)) {
        ptrace(PTRACE_LISTEN, tid, 0L, 0L);
        return;
    }
    tracee->waits_for_ids = !inherited_ids_find(tracee);
    if (!tracee->waits_for_ids)
        go_on(tid, 0);
}

static void stopped(struct tracer *tracer, pid_t tid, int status) {
    int number = WSTOPSIG(status);

    switch (status >> 16) {
    case PTRACE_EVENT_SECCOMP:
        call_stop(tracer, tid);
        break;
    case PTRACE_EVENT_EXEC:
        exec_event(tracer, tid);
        break;
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
        fork_event(tid);
        break;
    case PTRACE_EVENT_STOP:
        stop_event(tracer, tid, number);
        break;
    case 0:
        if (number == SYSCALL_STOP)
            exit_stop(tracer, tid);
        else
            go_on(tid, number);
        break;
    default:
        go_on(tid, 0);
        break;
    }
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static void kill_one(struct tracee *tracee, void *context) {
    (void)context;
    kill(tracee->tid, SIGKILL);
}

static void ended(struct tracer *tracer, pid_t tid, int status, int *main_status) {
    tracee_drop(tid);
    ids_may_be_known();
    if (tid != tracer->main_pid)
        return;
    *main_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    signals_main_ended();
}

int loop_run(struct tracer *tracer) {
    int main_status = EXIT_OWN_FAILURE, status;
    bool main_ended = false, ending = false;

    for (;;) {
        if (!ending && ((main_ended && tracer->options.kill_on_exit) || signals_end_wanted())) {
            ending = true;
            tracee_each(kill_one, NULL);
        }
        pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0 && errno == EINTR)
            continue;
        if (tid < 0)
            return main_status;
        if (WIFSTOPPED(status)) {
            if (ending) /* one that was just being made */
                kill(tid, SIGKILL);
            stopped(tracer, tid, status);
            continue;
        }
        ended(tracer, tid, status, &main_status);
        main_ended = main_ended || tid == tracer->main_pid;
    }
}
