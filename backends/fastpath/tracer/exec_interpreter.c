/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The ELF interpreter that was used last: nearly all programs of a guest have the same.
 *
 * Rules of this file
 *  - To look it up and check it anew costs a third of what the tracer does at an execve. What is remembered is used
 *    only while two calls show that it is right: its name below the host path of the guest's root still leads to the
 *    same inode, with the same ctime (so with the same owner, mode and content), and nobody has it open for writing.
 *  - That is also where the loader opens it, so a folder on the way may have moved.
 *  - The host finds that file by links in the host's terms. Where a guest's terms differ (a bind or an absolute link on
 *    the way) another inode or none is found, and nothing is remembered.
 *  - A ctime of the last second says little: on kernels before 6.13 two changes within a tick look alike.
 *  - Only for callers with the tracer's own rights. Not noticed: a mount that becomes noexec while the session runs.
 */
#define _GNU_SOURCE
#include "exec_interpreter.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "call.h"
#include "credentials.h"
#include "exec_file.h"
#include "tracer.h"

static struct {
    int descriptor; /* the file's, of the tracer's own; 0: nothing is remembered */
    char name[PATH_MAX];
    char literal[PATH_MAX]; /* the name behind the root's host path */
    struct stat status;
} memory;

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

bool exec_interpreter_remembered(const struct call *call, const char *name, struct exec_file *file) {
    struct stat status;

    if (memory.descriptor == 0 || strcmp(name, memory.name) != 0 || !credentials_same(call->tracee) ||
        stat(memory.literal, &status) != 0 || !same_file(&status, &memory.status) ||
        !exec_file_has_no_writer(memory.descriptor))
        return false;
    file->descriptor = -1;
    file->by_descriptor = file->by_other = false;
    strcpy(file->host, memory.literal);
    return true;
}

static bool is_settled(const struct stat *status) {
    struct timespec now;

    return clock_gettime(CLOCK_REALTIME, &now) == 0 && status->st_ctim.tv_sec + 1 < now.tv_sec;
}

void exec_interpreter_remember(const struct call *call, const char *name, struct exec_file *file) {
    struct stat status;

    if (memory.descriptor != 0)
        close(memory.descriptor);
    memory.descriptor = 0;
    if (name[0] != '/' || file->by_descriptor || !credentials_same(call->tracee))
        return;
    strcpy(memory.name, name);
    if (snprintf(memory.literal, PATH_MAX, "%s%s", call->tracer->root, name) >= PATH_MAX)
        return;
    if (fstat(file->descriptor, &memory.status) != 0 || stat(memory.literal, &status) != 0 ||
        !same_file(&status, &memory.status) || !is_settled(&status))
        return;
    memory.descriptor = file->descriptor;
    file->descriptor = -1;
}
