/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * readlink and readlinkat: a link's text stands in guest terms already, but for those of procfs, which the kernel
 * writes in host terms. They are answered by the tracer always, the others as any query is.
 */
#define _GNU_SOURCE
#include "readlink.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "call.h"
#include "credentials.h"
#include "host_path.h"
#include "memory.h"
#include "numbers.h"
#include "tracer.h"

static bool in_procfs(const struct call *call, const struct dd_result *result) {
    return !call->tracer->view.no_procfs && strncmp(result->host, "/proc/", strlen("/proc/")) == 0;
}

static long answer(const struct call *call, struct dd_result *result, int first) {
    struct dd_process process = call_process(call);
    int room = (int)call_argument(call, first + 2);
    char text[DD_PATH_BUFFER];

    int length = dd_proc_link(&call->tracer->view, &process, result->host, &result->work, text);
    if (length > room)
        length = room;
    if (length < 0)
        return length;
    int error = memory_write(call_tid(call), call_argument(call, first + 1), text, (size_t)length);
    return error != 0 ? error : length;
}

void readlink_enter(struct call *call) {
    int first = call->number == __NR_readlinkat ? 1 : 0; /* the argument that holds the path; then buffer and size */
    struct dd_result result;
    char path[PATH_MAX], buffer[PATH_MAX];
    const char *host;

    if ((int)call_argument(call, first + 2) <= 0) {
        call_answer(call, -EINVAL);
        return;
    }
    int length = memory_read_string(call_tid(call), call_argument(call, first), path, sizeof(path));
    if (length == 0)
        return; /* the kernel knows about empty paths */
    int error = length < 0 ? length : call_resolve(call, first - 1, path, DD_NOFOLLOW, &result);
    if (error != 0) {
        call_answer(call, error);
        return;
    }
    if (in_procfs(call, &result) || (result.changed && credentials_same(call->tracee))) {
        call_answer(call, answer(call, &result, first));
        return;
    }
    if (!result.changed)
        return;
    error = host_path_for_caller(call, result.host, buffer, &host);
    if (error == 0) {
        const struct replacement text = {.argument = first, .bytes = host, .size = strlen(host) + 1};
        error = call_replace(call, &text, 1);
    }
    if (error != 0)
        call_answer(call, error);
}
