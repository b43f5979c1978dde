/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Signals that the tracer itself gets: it hands them on to the main program, and stops with it on a terminal.
 *
 * Rules of this file
 *  - What the terminal sends (SI_KERNEL) went to the whole foreground group: a main program in the tracer's group has
 *    it already.
 *  - ^Z must stop the tracer too, or the shell that started it would wait on; but only once the main program has really
 *    stopped, for it may catch the signal. A stop that somebody else sent to the main program is none of the tracer's:
 *    nobody would wake it.
 *  - Handlers touch sig_atomic_t and make calls that are safe there. No SA_RESTART: waitpid() shall return.
 */
#define _GNU_SOURCE
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
static const int stopping[] = {SIGTSTP, SIGTTIN, SIGTTOU};

enum { FORWARDED = sizeof(forwarded) / sizeof(forwarded[0]), STOPPING = sizeof(stopping) / sizeof(stopping[0]) };

static volatile pid_t main_pid; /* 0: it has ended */
static volatile sig_atomic_t main_stopped, stop_asked, end_wanted;

static bool terminal_sent_it_to_both(const siginfo_t *info) {
    return info->si_code == SI_KERNEL && getpgid(main_pid) == getpgrp();
}

static void forward(int number, siginfo_t *info, void *context) {
    int error = errno;

    (void)context;
    if (main_pid == 0) {
        end_wanted = 1;
        alarm(1); /* should waitpid() not have slept yet, this wakes it */
    } else if (!terminal_sent_it_to_both(info)) {
        kill(main_pid, number);
    }
    errno = error;
}

static void stop_together(void) {
    if (!main_stopped || !stop_asked)
        return;
    stop_asked = 0;
    raise(SIGSTOP);
}

static void note_stop(int number, siginfo_t *info, void *context) {
    int error = errno;

    (void)number;
    (void)context;
    stop_asked = info->si_code == SI_KERNEL;
    stop_together();
    errno = error;
}

static void wake(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
}

static void set(int number, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void signals_start(pid_t pid) {
    main_pid = pid;
    for (int n = 0; n < FORWARDED; n++)
        set(forwarded[n], forward);
    for (int n = 0; n < STOPPING; n++)
        set(stopping[n], note_stop);
    set(SIGALRM, wake);
    set(SIGIO, wake); /* of a lease that somebody else wants broken (exec_file.c): it is given back anyway */
    set(SIGXFSZ, wake); /* the limit of file sizes is the main program's; what the tracer cannot write is an error there */
    /* Were it ignored, there would be no status to wait for; and a stop of a tracee need not be told by a signal as
     * well. */
    const struct sigaction of_children = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
    sigaction(SIGCHLD, &of_children, NULL);
}

void signals_main_stopped(bool stopped) {
    main_stopped = stopped;
    stop_together();
}

void signals_main_ended(void) {
    main_pid = 0;
}

bool signals_end_wanted(void) {
    return end_wanted != 0;
}
