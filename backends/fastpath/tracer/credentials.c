/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Whether a tracee has the tracer's own rights to files.
 *
 * Rules of this file
 *  - Tracees inherit the tracer's credentials, no_new_privs keeps exec from changing them, and what changes them is
 *    traced. So as long as no process of the session has made such a call, nobody needs to be asked.
 *  - After the first such call each thread is asked once (/proc/TID/status), and again after each such call of its own.
 *  - A guest's own seccomp filter needs no care: what it refuses never becomes a stop. Landlock does, and nothing tells
 *    whom it holds: from its first use on the tracer answers nothing by itself.
 */
#define _GNU_SOURCE
#include "credentials.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "call.h"

enum { NOT_ASKED = 0, SAME = 1, DIFFERENT = -1 };

static bool any_changed;
static bool any_sandboxed;

/* The lines that decide about files. access(2) asks with the real ids, all others with the fs ids; both are in Uid and
 * Gid. */
static const char *const deciding[] = {"\nUid:", "\nGid:", "\nGroups:", "\nCapPrm:", "\nCapEff:"};

enum { STATUS_SIZE = 4096 };

static bool read_status(const char *name, char text[STATUS_SIZE]) {
    int descriptor = open(name, O_RDONLY | O_CLOEXEC);

    if (descriptor < 0)
        return false;
    ssize_t length = read(descriptor, text, STATUS_SIZE - 1);
    close(descriptor);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static bool same_line(const char *a, const char *b, const char *key) {
    const char *in_a = strstr(a, key);
    const char *in_b = strstr(b, key);

    if (in_a == NULL || in_b == NULL)
        return false;
    size_t length = strcspn(in_a + 1, "\n") + 1;
    return strncmp(in_a, in_b, length) == 0 && in_b[length] == '\n';
}

static bool ask(const struct tracee *tracee) {
    char name[64], theirs[STATUS_SIZE], own[STATUS_SIZE];

    snprintf(name, sizeof(name), "/proc/%d/status", (int)tracee->tid);
    if (!read_status(name, theirs) || !read_status("/proc/self/status", own))
        return false;
    for (size_t n = 0; n < sizeof(deciding) / sizeof(deciding[0]); n++)
        if (!same_line(theirs, own, deciding[n]))
            return false;
    return true;
}

bool credentials_same(struct tracee *tracee) {
    if (any_sandboxed)
        return false;
    if (!any_changed)
        return true;
    if (tracee->credentials == NOT_ASKED)
        tracee->credentials = ask(tracee) ? SAME : DIFFERENT;
    return tracee->credentials == SAME;
}

void credentials_change(struct call *call) {
    any_changed = true;
    call->tracee->credentials = NOT_ASKED;
}

void credentials_sandbox(struct call *call) {
    (void)call;
    any_sandboxed = true;
}
