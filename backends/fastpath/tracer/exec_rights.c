/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Looking at files with the rights of a caller that is not the tracer's user.
 *
 * Rules of this file
 *  - Only a tracer that is root has callers of other users; elsewhere nothing is asked and nothing done.
 *  - setfsuid(2) takes the tracer's own privilege over files along (capabilities(7)), and gives it back.
 *  - Raw calls: libc would change all threads of the process, and the tracer has one.
 */
#define _GNU_SOURCE
#include "exec_rights.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "credentials.h"
#include "tracee.h"

#define STATUS_SIZE (16 * 1024) /* /proc/PID/status with RIGHTS_GROUPS groups */

/* What the line of /proc/PID/status says behind its key, or "". */
static const char *value_of(const char *status, const char *key) {
    const char *line = strstr(status, key);

    return line ? line + strlen(key) : "";
}

/* The fourth of the numbers: real, effective, saved, file system. */
static unsigned long fourth_number(const char *numbers) {
    char *rest = (char *)numbers;

    for (int n = 0; n < 3; n++)
        (void)strtoul(rest, &rest, 10);
    return strtoul(rest, NULL, 10);
}

static int read_numbers(const char *numbers, gid_t *groups) {
    char *rest = (char *)numbers;
    int count = 0;

    while (count < RIGHTS_GROUPS && strspn(rest, " \t") != strcspn(rest, "\n"))
        groups[count++] = (gid_t)strtoul(rest, &rest, 10);
    return count;
}

static bool read_status(pid_t tid, char *text) {
    char name[64];
    ssize_t length;
    int file;

    snprintf(name, sizeof(name), "/proc/%d/status", (int)tid);
    file = open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    length = read(file, text, STATUS_SIZE - 1);
    close(file);
    text[length < 0 ? 0 : length] = '\0';
    return length > 0;
}

void rights_borrow(struct tracee *tracee, struct rights *own) {
    char status[STATUS_SIZE];
    gid_t groups[RIGHTS_GROUPS];
    unsigned long user, group;
    int count;

    own->borrowed = false;
    if (geteuid() != 0 || credentials_same(tracee) || !read_status(tracee->tid, status))
        return;
    user = fourth_number(value_of(status, "\nUid:"));
    if (user == 0)
        return;
    group = fourth_number(value_of(status, "\nGid:"));
    count = read_numbers(value_of(status, "\nGroups:"), groups);
    own->borrowed = true;
    own->group = getegid();
    own->group_count = getgroups(RIGHTS_GROUPS, own->groups);
    (void)syscall(SYS_setgroups, (long)count, groups);
    (void)syscall(SYS_setfsgid, group);
    (void)syscall(SYS_setfsuid, user);
}

void rights_return(const struct rights *own) {
    if (!own->borrowed)
        return;
    (void)syscall(SYS_setfsuid, 0UL);
    (void)syscall(SYS_setfsgid, (unsigned long)own->group);
    if (own->group_count >= 0)
        (void)syscall(SYS_setgroups, (long)own->group_count, own->groups);
}
