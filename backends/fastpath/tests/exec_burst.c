/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Many execs at once: threads that spawn programs and scripts, children that exec from one of several threads, and
 * processes that are killed meanwhile. Every child's exit status and output has to be its own.
 *
 *   exec_burst THREADS ROUNDS SCRIPT      SCRIPT ends with the number that is its first argument
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MANY 3000 /* arguments: more than one slot holds */

static int rounds;
static char *script;
static char *variables[] = {"PATH=/usr/bin:/bin", NULL};
static int failures;

static void check(int status, int expected, const char *what) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == expected)
        return;
    fprintf(stderr, "%s: status %x in place of %d\n", what, status, expected);
    __atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
}

static char **vector(char *path, int code, int count) {
    char **argv = calloc((size_t)count + 3, sizeof(char *));

    argv[0] = path;
    if (asprintf(&argv[1], "%d", code) < 0)
        abort();
    for (int n = 2; n < count; n++)
        argv[n] = "x";
    return argv;
}

static void spawn_one(int code, int count) {
    char **argv = vector(script, code, count);
    pid_t pid;
    int status = -1, error = posix_spawn(&pid, script, NULL, NULL, argv, variables);

    if (error == 0)
        waitpid(pid, &status, 0);
    check(status, code, "spawn");
    free(argv);
}

static void *exec_here(void *argv) {
    execve(script, argv, variables);
    _exit(98);
}

static void *wait_here(void *unused) {
    for (;;)
        pause();
    return unused;
}

/* A child with several threads, of which one that is not the leader calls execve. */
static void exec_from_thread(int code) {
    char **argv = vector(script, code, 2);
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        pthread_t others[3];

        for (int n = 0; n < 3; n++)
            pthread_create(&others[n], NULL, n == 2 ? exec_here : wait_here, argv);
        wait_here(NULL);
    }
    waitpid(pid, &status, 0);
    check(status, code, "thread");
    free(argv);
}

/* A child that is killed about when it execs. */
static void exec_and_kill(int code) {
    char **argv = vector(script, code, 2);
    int status;
    pid_t pid = fork();

    if (pid == 0)
        exec_here(argv);
    nanosleep(&(struct timespec){.tv_nsec = code * 20000}, NULL);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status))
        check(status, code, "killed");
    free(argv);
}

static void *work(void *number) {
    for (int n = 0; n < rounds; n++) {
        int code = (int)(((long)number * 31 + n) % 90);

        spawn_one(code, n % 4 ? 2 : MANY);
        if (n % 3 == 0)
            exec_from_thread(code);
        if (n % 3 == 1)
            exec_and_kill(code);
    }
    return NULL;
}

int main(int argc, char **argv) {
    long count = argc == 4 ? atol(argv[1]) : 0;
    pthread_t threads[64];

    if (count < 1 || count > 64)
        return 2;
    rounds = atoi(argv[2]);
    script = argv[3];
    for (long n = 0; n < count; n++)
        pthread_create(&threads[n], NULL, work, (void *)n);
    for (long n = 0; n < count; n++)
        pthread_join(threads[n], NULL);
    printf("%d failures\n", failures);
    return failures != 0;
}
