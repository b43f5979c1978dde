/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * droiddeck-tracer: runs a program in a guest's files. Set up, start, loop, clean up.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binds.h"
#include "epoch.h"
#include "failure.h"
#include "filter.h"
#include "identity.h"
#include "kernel_identity.h"
#include "listing.h"
#include "loop.h"
#include "session_page.h"
#include "start.h"
#include "tracer.h"

static struct tracer tracer;
static struct filter filter;

/* PROOT_LOADER, or the file beside this program. */
static void find_loader(void) {
    static const char name[] = "droiddeck-loader";
    const char *given = getenv(DD_ENV_LOADER);
    char beside[PATH_MAX];

    if (given == NULL || *given == '\0') {
        ssize_t length = readlink("/proc/self/exe", beside, sizeof(beside) - sizeof(name));
        if (length < 0)
            fail("/proc/self/exe: %s", strerror(errno));
        beside[length] = '\0';
        memcpy(strrchr(beside, '/') + 1, name, sizeof(name));
        given = beside;
    }
    if (realpath(given, tracer.loader) == NULL || access(tracer.loader, X_OK) != 0)
        fail("loader %s: %s", given, strerror(errno));
}

static void start_fast_path(void) {
    const char *key = getenv(DD_ENV_FASTPATH);

    if (key == NULL)
        return;
    if (strlen(key) != DD_KEY_SIZE - 1 || strspn(key, "0123456789abcdef") != DD_KEY_SIZE - 1)
        fail("%s is not a key of %d hexadecimal digits", DD_ENV_FASTPATH, DD_KEY_SIZE - 1);
    memcpy(tracer.key, key, DD_KEY_SIZE);
    int descriptor = binds_make_file(&tracer, tracer.epoch_path);
    if (descriptor < 0)
        fail("file for the epoch page: %s", strerror(-descriptor));
    /* Whoever of the session drops its rights still counts what it changes. */
    int error = fchmod(descriptor, 0666) == 0 ? session_page_write(&tracer, descriptor) : -errno;
    if (error == 0)
        error = epoch_open(descriptor);
    if (error != 0)
        fail("epoch page %s: %s", tracer.epoch_path, strerror(-error));
}

static void start_filter(void) {
    const struct filter_needs needs = {
        .ids = identity_emulated(),
        .utsname = kernel_identity_set(),
        .fast_path = tracer.key[0] != '\0',
        .listings = listing_is_needed(&tracer),
    };

    if (!filter_build(&filter, needs))
        fail("the seccomp filter is longer than the kernel's limit of %d instructions", FILTER_LIMIT);
}

/* The main program has the limit that it was given; the tracer works for many, and must always be able to answer. So the
 * cache leaves half of what there is. */
static void start_cache(void) {
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        fail("limit of descriptors: %s", strerror(errno));
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    dd_dir_cache_open(&tracer.cache, limit.rlim_cur / 2 < INT_MAX ? (int)(limit.rlim_cur / 2) : INT_MAX);
}

static void clean_up(void) {
    binds_end(&tracer);
}

int main(int argc, char **argv) {
    options_parse(&tracer.options, argc, argv);
    const char *no_seccomp = getenv(DD_ENV_NO_SECCOMP);
    if (no_seccomp != NULL && *no_seccomp != '\0' && strcmp(no_seccomp, "0") != 0)
        fail("%s: this tracer works by a seccomp filter alone; unset it", DD_ENV_NO_SECCOMP);
    if (tracer.options.kernel_release != NULL && !kernel_identity_parse(tracer.options.kernel_release))
        fail("-k %s: neither a release nor \\sysname\\nodename\\release\\version\\machine\\domainname\\hwcap\\",
             tracer.options.kernel_release);
    find_loader();
    identity_start(&tracer.options);
    atexit(clean_up);
    binds_start(&tracer);
    start_fast_path();
    start_filter();
    start_main(&tracer, &filter);
    start_cache();
    return loop_run(&tracer);
}
