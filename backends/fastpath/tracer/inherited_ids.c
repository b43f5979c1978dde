/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which emulated ids a new thread begins with: those of the thread that made it.
 *
 * Rules of this file
 *  - Only the maker's fork event tells who it is, and which ids it had then. It may come after the child's first stop,
 *    or never: a maker that is killed, or whose process ends or execs meanwhile, does not report it. So nobody waits
 *    for the event who can know without.
 *  - While the event has not come the maker has not gone on. Where all threads of its process have the same ids, as a
 *    C library keeps them, those are the child's.
 *  - A process whose maker is gone has those of whoever it was left to, or else those that the session began with.
 */
#define _GNU_SOURCE
#include "inherited_ids.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "identity.h"
#include "tracee.h"

static pid_t field(const char *status, const char *key) {
    const char *line = strstr(status, key);

    return line != NULL ? (pid_t)strtol(line + strlen(key), NULL, 10) : 0;
}

/* The process that it was made by; 0: it is gone. */
static pid_t maker_of(const struct tracee *child) {
    char name[64], text[512];

    snprintf(name, sizeof(name), "/proc/%d/status", (int)child->tid);
    int descriptor = open(name, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return 0;
    ssize_t length = read(descriptor, text, sizeof(text) - 1);
    close(descriptor);
    text[length > 0 ? length : 0] = '\0';
    pid_t process = field(text, "\nTgid:");
    return process != child->tid ? process : field(text, "\nPPid:");
}

struct search {
    pid_t process;
    struct tracee *found; /* one of its threads */
    bool differ;
};

static void look_at(struct tracee *tracee, void *context) {
    struct search *search = context;

    if (tracee->ids == NULL || tracee_tgid(tracee) != search->process)
        return;
    search->differ = search->differ || (search->found != NULL && !identity_same(tracee, search->found));
    search->found = tracee;
}

bool inherited_ids_find(struct tracee *child) {
    if (!identity_emulated() || child->ids != NULL)
        return true;
    struct search search = {.process = maker_of(child)};
    tracee_each(look_at, &search);
    if (search.differ)
        return false;
    identity_inherit(child, search.found);
    return true;
}

/* Its end was not told yet. */
static bool is_there(pid_t tid) {
    siginfo_t info;

    return waitid(P_PID, (id_t)tid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0;
}

void inherited_ids_hand_on(struct tracee *maker, pid_t child_tid) {
    if (!is_there(child_tid))
        return;
    struct tracee *child = tracee_get(child_tid);
    if (child->ids == NULL)
        identity_inherit(child, maker);
}
