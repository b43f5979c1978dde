/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Calls that a signal interrupts, and that the kernel restarts or not: opening a FIFO with SA_RESTART and without,
 * leaving the call by siglongjmp, and by a handler that opens files itself.
 *
 *   restart FOLDER     FOLDER is writable and empty, an absolute path
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIGNALS = 40 };

static volatile sig_atomic_t *handled; /* shared with the child */
static sigjmp_buf out;
static char fifo[4096];
static int wrong; /* static: it must survive siglongjmp */

static void count(int number) {
    struct stat status;
    int error = errno;

    (void)number;
    stat("/etc", &status);
    close(open(fifo, O_PATH));
    (*handled)++;
    errno = error;
}

static void leave(int number) {
    (void)number;
    (*handled)++;
    siglongjmp(out, 1);
}

/* Signals its parent, each time waiting until the handler has run, then opens the other end. */
static pid_t start_signaller(int signals) {
    pid_t parent = getpid();
    pid_t child = fork();

    if (child != 0)
        return child;
    for (int n = 0; n < signals; n++) {
        int before = *handled;
        usleep(1000); /* so that most of them meet the parent in its call; none has to */
        kill(parent, SIGUSR1);
        while (*handled == before)
            sched_yield();
    }
    int there = open(fifo, O_WRONLY);
    _exit(there < 0 || write(there, "x", 1) != 1);
}

static void handle(void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

    sigaction(SIGUSR1, &action, NULL);
}

static int end_of(pid_t child) {
    int status;

    while (waitpid(child, &status, 0) < 0)
        ;
    return status;
}

int main(int argc, char **argv) {
    char byte = 0;

    if (argc != 2)
        return 2;
    snprintf(fifo, sizeof(fifo), "%s/fifo", argv[1]);
    if (mkfifo(fifo, 0600) != 0)
        return 2;
    handled = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    handle(count, SA_RESTART);
    pid_t child = start_signaller(SIGNALS);
    int here = open(fifo, O_RDONLY);
    printf("restarted open: %s\n", here >= 0 && read(here, &byte, 1) == 1 && byte == 'x' ? "ok" : strerror(errno));
    printf("signaller: %d, handled %d\n", end_of(child), *handled);
    close(here);

    *handled = 0;
    handle(count, 0);
    child = start_signaller(SIGNALS);
    int interrupted = 0;
    while ((here = open(fifo, O_RDONLY)) < 0 && errno == EINTR)
        interrupted++;
    printf("interrupted open: %s, %s\n", here >= 0 ? "ok" : strerror(errno), interrupted > 0 ? "EINTR seen" : "never");
    if (here >= 0 && read(here, &byte, 1) != 1)
        printf("no byte\n");
    printf("signaller: %d, handled %d\n", end_of(child), *handled);
    close(here);

    /* Left by siglongjmp while blocked: what comes after must be as ever. */
    *handled = 0;
    handle(leave, SA_NODEFER);
    child = start_signaller(SIGNALS);
    struct stat status;
    sigsetjmp(out, 1); /* every signal comes back to here */
    wrong += stat(fifo, &status) != 0 || !S_ISFIFO(status.st_mode);
    here = open(fifo, O_RDONLY);
    printf("after siglongjmp: %s\n", !wrong && here >= 0 && read(here, &byte, 1) == 1 ? "ok" : strerror(errno));
    printf("signaller: %d, handled %d\n", end_of(child), *handled);

    /* Left while busy: calls that do not block. */
    *handled = 0;
    struct sigaction action = {.sa_handler = leave, .sa_flags = SA_NODEFER};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 1500}, {0, 1500}};
    setitimer(ITIMER_REAL, &every, NULL);
    if (sigsetjmp(out, 1) != 0 && *handled >= 100) {
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
        printf("busy and left: %s\n", wrong ? "wrong" : "ok");
        return 0;
    }
    for (;;) {
        int descriptor = open("/etc", O_PATH);
        if (descriptor >= 0)
            close(descriptor);
        else if (errno != EMFILE)
            wrong = 1;
        if (stat(fifo, &status) != 0)
            wrong = 1;
    }
}
