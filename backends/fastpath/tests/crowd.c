/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Many at once: threads that each use paths of their own, and processes and threads that are all blocked in an open.
 *
 *   crowd threads|processes|blocked N FOLDER
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 300 };

static const char *folder;
static atomic_int wrong;

static void check(bool right) {
    if (!right)
        atomic_fetch_add(&wrong, 1);
}

static void *use_paths(void *argument) {
    char path[4096], other[4096], text[32], read_back[32];
    long n = (long)argument;

    for (int round = 0; round < ROUNDS; round++) {
        struct stat status;
        snprintf(path, sizeof(path), "%s/%ld-%d", folder, n, round);
        snprintf(other, sizeof(other), "%s/%ld-%d.renamed", folder, n, round);
        int length = snprintf(text, sizeof(text), "%ld:%d", n, round);
        int descriptor = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
        check(descriptor >= 0 && write(descriptor, text, (size_t)length) == length);
        close(descriptor);
        check(stat(path, &status) == 0 && status.st_size == length);
        check(rename(path, other) == 0 && access(path, F_OK) != 0);
        descriptor = open(other, O_RDONLY | O_CLOEXEC);
        check(read(descriptor, read_back, sizeof(read_back)) == length && memcmp(text, read_back, (size_t)length) == 0);
        close(descriptor);
        check(unlink(other) == 0);
    }
    return NULL;
}

/* Opens a FIFO, and is blocked until somebody opens the other end. */
static void *read_fifo(void *argument) {
    char path[4096], byte;

    snprintf(path, sizeof(path), "%s/fifo-%ld", folder, (long)argument);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    check(descriptor >= 0 && read(descriptor, &byte, 1) == 1);
    close(descriptor);
    return NULL;
}

static void release(long count) {
    char path[4096];

    for (long n = 0; n < count; n++) {
        snprintf(path, sizeof(path), "%s/fifo-%ld", folder, n);
        int descriptor = open(path, O_WRONLY | O_CLOEXEC);
        check(descriptor >= 0 && write(descriptor, "x", 1) == 1);
        close(descriptor);
    }
}

static void make_fifos(long count) {
    char path[4096];

    for (long n = 0; n < count; n++) {
        snprintf(path, sizeof(path), "%s/fifo-%ld", folder, n);
        check(mkfifo(path, 0600) == 0);
    }
}

static void in_threads(long count, void *(*work)(void *), bool released) {
    pthread_t *threads = calloc((size_t)count, sizeof(*threads));

    for (long n = 0; n < count; n++)
        check(pthread_create(&threads[n], NULL, work, (void *)n) == 0);
    if (released)
        release(count);
    for (long n = 0; n < count; n++)
        pthread_join(threads[n], NULL);
    free(threads);
}

static void in_processes(long count) {
    int status;

    for (long n = 0; n < count; n++)
        if (fork() == 0) {
            read_fifo((void *)n);
            _exit(wrong != 0);
        }
    release(count);
    while (wait(&status) > 0)
        check(status == 0);
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    long count = strtol(argv[2], NULL, 10);
    folder = argv[3];
    if (strcmp(argv[1], "threads") == 0) {
        in_threads(count, use_paths, false);
    } else {
        make_fifos(count);
        if (strcmp(argv[1], "processes") == 0)
            in_processes(count);
        else
            in_threads(count, read_fifo, true);
    }
    printf("%s: %d wrong\n", argv[1], wrong);
    return wrong != 0;
}
