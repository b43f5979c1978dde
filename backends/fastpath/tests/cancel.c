/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * pthread_cancel of threads that are blocked in calls which the tracer translates: opening a FIFO, connecting to and
 * accepting on a Unix socket whose name is in a folder. Each must end as cancelled.
 *
 *   cancel FOLDER     FOLDER is writable and empty, an absolute path
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static char fifo[4096];
static struct sockaddr_un name = {.sun_family = AF_UNIX};
static int server;
static atomic_int cleaned;

static void clean(void *argument) {
    (void)argument;
    atomic_fetch_add(&cleaned, 1);
}

static void *open_fifo(void *argument) {
    pthread_cleanup_push(clean, NULL);
    open(fifo, O_RDONLY);
    pthread_cleanup_pop(0);
    return argument;
}

static void *connect_full(void *argument) {
    pthread_cleanup_push(clean, NULL);
    for (;;) /* until the backlog is full */
        connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name, sizeof(name));
    pthread_cleanup_pop(0);
    return argument;
}

static void *accept_none(void *argument) {
    struct sockaddr_un peer;
    socklen_t size = sizeof(peer);

    pthread_cleanup_push(clean, NULL);
    for (;;)
        close(accept(server, (struct sockaddr *)&peer, &size));
    pthread_cleanup_pop(0);
    return argument;
}

static void cancel(const char *what, void *(*work)(void *)) {
    const struct timespec soon = {0, 30 * 1000 * 1000};
    pthread_t thread;
    void *result = NULL;

    pthread_create(&thread, NULL, work, NULL);
    nanosleep(&soon, NULL); /* most likely it is blocked by now; it must end so or so */
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("%s: %s, %d cleaned\n", what, result == PTHREAD_CANCELED ? "cancelled" : "returned", cleaned);
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    snprintf(fifo, sizeof(fifo), "%s/fifo", argv[1]);
    snprintf(name.sun_path, sizeof(name.sun_path), "%.90s/socket", argv[1]);
    server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (mkfifo(fifo, 0600) != 0 || bind(server, (struct sockaddr *)&name, sizeof(name)) != 0 || listen(server, 0) != 0)
        return 2;
    for (int n = 0; n < 5; n++)
        cancel("open", open_fifo);
    cancel("connect", connect_full);
    cancel("accept", accept_none);
    return 0;
}
