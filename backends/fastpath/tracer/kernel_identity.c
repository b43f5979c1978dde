/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The kernel that the guest believes to run on: uname(2), and what /proc says of it, agree.
 *
 * Rules of this file
 *  - A bare release changes the release alone. The seventh field, hwcap, is read and left alone: it would ask for
 *    emulation.
 */
#define _GNU_SOURCE
#include "kernel_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "binds.h"
#include "call.h"
#include "memory.h"
#include "tracer.h"

enum { FIELDS = 7 };

static struct utsname identity;
static bool is_set;

bool kernel_identity_set(void) {
    return is_set;
}

/* Copy up to the next backslash, or to the end. NULL: it does not fit. */
static const char *take_field(const char *text, char *field, size_t size) {
    size_t length = strcspn(text, "\\");

    if (length == 0 || length >= size)
        return NULL;
    memcpy(field, text, length);
    field[length] = '\0';
    return text + length;
}

bool kernel_identity_parse(const char *text) {
    char hwcap[32];
    char *const fields[FIELDS] = {identity.sysname, identity.nodename, identity.release, identity.version,
                                  identity.machine, identity.domainname, hwcap};

    uname(&identity);
    is_set = true;
    if (text[0] != '\\') {
        const char *end = take_field(text, identity.release, sizeof(identity.release));
        return end != NULL && *end == '\0';
    }
    for (int n = 0; n < FIELDS; n++) {
        text = take_field(text + 1, fields[n], n == FIELDS - 1 ? sizeof(hwcap) : sizeof(identity.release));
        if (text == NULL || *text != '\\')
            return false;
    }
    return text[1] == '\0';
}

void kernel_identity_tell(char fields[6][65]) {
    memcpy(fields, &identity, sizeof(identity));
}

void kernel_identity_uname(struct call *call) {
    call_answer(call, memory_write(call_tid(call), call_argument(call, 0), &identity, sizeof(identity)));
}

/* ---- /proc ------------------------------------------------------------------------------------------------------- */

/* "Linux version RELEASE (who built it) (with what) VERSION": the middle stays the real one's. */
static void compose_version(char *text, size_t size) {
    struct utsname real;
    char proc[1024] = {0}, lead[256];

    uname(&real);
    int descriptor = open("/proc/version", O_RDONLY | O_CLOEXEC);
    ssize_t length = descriptor < 0 ? -1 : read(descriptor, proc, sizeof(proc) - 1);
    if (descriptor >= 0)
        close(descriptor);
    int lead_length = snprintf(lead, sizeof(lead), "%s version %s", real.sysname, real.release);
    char *tail = length > 0 ? strstr(proc, real.version) : NULL;
    const char *middle = " ";
    if (tail != NULL && strncmp(proc, lead, (size_t)lead_length) == 0) {
        *tail = '\0';
        middle = proc + lead_length;
    }
    snprintf(text, size, "%s version %s%s%s\n", identity.sysname, identity.release, middle, identity.version);
}

static int bind_text(struct tracer *tracer, const char *guest, const char *text) {
    char host[PATH_MAX];

    if (!binds_from_procfs(tracer, guest))
        return 0;
    int descriptor = binds_make_file(tracer, host);
    if (descriptor < 0)
        return descriptor;
    size_t length = strlen(text);
    int error = write(descriptor, text, length) == (ssize_t)length && fchmod(descriptor, 0444) == 0 ? 0 : -errno;
    close(descriptor);
    if (error == 0)
        error = dd_view_add(&tracer->view, host, guest);
    dd_view_finish(&tracer->view);
    return error;
}

int kernel_identity_bind(struct tracer *tracer) {
    const struct {
        const char *guest;
        const char *text;
    } files[] = {
        {"/proc/sys/kernel/ostype", identity.sysname},       {"/proc/sys/kernel/hostname", identity.nodename},
        {"/proc/sys/kernel/osrelease", identity.release},    {"/proc/sys/kernel/version", identity.version},
        {"/proc/sys/kernel/domainname", identity.domainname},
    };
    char text[2048];
    int error = 0;

    for (size_t n = 0; n < sizeof(files) / sizeof(files[0]) && error == 0; n++) {
        snprintf(text, sizeof(text), "%s\n", files[n].text);
        error = bind_text(tracer, files[n].guest, text);
    }
    if (error != 0)
        return error;
    compose_version(text, sizeof(text));
    return bind_text(tracer, "/proc/version", text);
}
