/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The main program's start: a child that waits until it is traced, then puts the filter on and execs.
 *
 * Rules of this file
 *  - The child does all that needs host paths before the filter is on: afterwards its paths are the guest's.
 *  - The tracer seizes before the child may go on, so no call of the guest's is ever missed.
 */
#define _GNU_SOURCE
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"
#include "filter.h"
#include "signals.h"
#include "slots.h"
#include "tracer.h"

enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static char scratch[SLOTS_SIZE];

uint64_t start_scratch(size_t size) {
    return size <= sizeof(scratch) ? (uint64_t)(uintptr_t)scratch : 0;
}

static int resolve(const struct tracer *tracer, const char *base, const char *guest, struct dd_result *result) {
    struct dd_process process = {.tid = getpid(), .tgid = getpid()};

    return dd_resolve(&tracer->view, &process, base, guest, DD_FOLLOW, result);
}

/* ---- which program ----------------------------------------------------------------------------------------------- */

static int check_program(const struct tracer *tracer, const char *cwd, const char *guest) {
    struct dd_result result;
    struct stat status;

    int error = resolve(tracer, cwd, guest, &result);
    if (error != 0)
        return error;
    if (stat(result.host, &status) != 0)
        return -errno;
    return S_ISREG(status.st_mode) && access(result.host, X_OK) == 0 ? 0 : -EACCES;
}

/* Where PATH, in guest terms, has this program. 0, or the errno to tell. */
static int search_path(const struct tracer *tracer, const char *cwd, const char *name, char found[PATH_MAX]) {
    const char *path = getenv("PATH");
    int outcome = -ENOENT;

    for (const char *rest = path != NULL && *path != '\0' ? path : default_path; rest != NULL;) {
        size_t length = strcspn(rest, ":");
        bool fits = snprintf(found, PATH_MAX, "%.*s%s%s", (int)length, rest, length > 0 ? "/" : "./", name) < PATH_MAX;
        int error = fits ? check_program(tracer, cwd, found) : -ENAMETOOLONG;
        if (error == 0)
            return 0;
        if (error == -EACCES)
            outcome = error;
        rest = rest[length] == ':' ? rest + length + 1 : NULL;
    }
    return outcome;
}

/* Says why, and returns the status for it. */
static int cannot_run(const char *program, int error) {
    say("%s: %s", program, strerror(error));
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

/* ---- the child --------------------------------------------------------------------------------------------------- */

/* Returns the status to end with, should the program not be run. */
static int run_child(const struct tracer *tracer, const struct filter *filter, const char *cwd, const char *program,
                     int go) {
    char *const *command = tracer->options.command;
    char byte;

    if (chdir(cwd) != 0) {
        say("working directory %s: %s", tracer->options.cwd, strerror(errno));
        return EXIT_OWN_FAILURE;
    }
    if (read(go, &byte, 1) != 1)
        return EXIT_OWN_FAILURE; /* the tracer has said why */
    int error = filter_install(filter);
    if (error != 0) {
        say("seccomp filter: %s", strerror(-error));
        return EXIT_OWN_FAILURE;
    }
    execv(program, command);
    return cannot_run(command[0], errno);
}

static void seize(pid_t pid) {
    const long options = PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;

    if (ptrace(PTRACE_SEIZE, pid, 0L, options) != 0)
        fail("ptrace is not permitted here (a container's seccomp profile, Yama's ptrace_scope, or another tracer): %s",
             strerror(errno));
}

void start_main(struct tracer *tracer, const struct filter *filter) {
    const char *name = tracer->options.command[0];
    struct dd_result cwd;
    char found[PATH_MAX];
    int go[2];

    int error = resolve(tracer, NULL, tracer->options.cwd, &cwd);
    if (error != 0 || cwd.missing)
        fail("working directory %s: %s", tracer->options.cwd, strerror(error != 0 ? -error : ENOENT));
    const char *program = name;
    if (strchr(name, '/') == NULL) {
        error = search_path(tracer, cwd.host, name, found);
        if (error != 0)
            exit(cannot_run(name, -error));
        program = found;
    }
    if (pipe2(go, O_CLOEXEC) != 0)
        fail("pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0)
        fail("fork: %s", strerror(errno));
    if (pid == 0) {
        close(go[1]);
        _exit(run_child(tracer, filter, cwd.host, program, go[0])); /* what exit() cleans up is the tracer's */
    }
    close(go[0]);
    seize(pid);
    tracer->main_pid = pid;
    signals_start(pid);
    if (write(go[1], "", 1) != 1)
        fail("the main program cannot be told to go on: %s", strerror(errno));
    close(go[1]);
}
