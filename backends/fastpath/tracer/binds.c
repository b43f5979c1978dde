/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The guest's view: root and binds in the order of the command line, as a sequence of mount(8) would set them up.
 *
 * Rules of this file
 *  - A bind's guest path may have links: they are followed in guest terms, through the binds before it.
 *  - Nothing is made in the rootfs. Where the folders above a mount point are missing, the first of them is shown as an
 *    empty folder of our own ("glue"), with the rest of the way below it.
 *  - What cannot be bound is an error: the guest would be another.
 */
#define _GNU_SOURCE
#include "binds.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "failure.h"
#include "kernel_identity.h"
#include "tracer.h"

/* ---- a folder of our own ----------------------------------------------------------------------------------------- */

static int make_folder(struct tracer *tracer) {
    const char *tmp = getenv(DD_ENV_TMP_DIR);
    char given[PATH_MAX];

    if (tracer->folder[0] != '\0')
        return 0;
    if (tmp == NULL || *tmp == '\0')
        tmp = "/tmp";
    int length = snprintf(given, sizeof(given), "%s/droiddeck-tracer-XXXXXX", tmp);
    if (length >= (int)sizeof(given))
        return -ENAMETOOLONG;
    if (mkdtemp(given) == NULL || realpath(given, tracer->folder) == NULL)
        return -errno;
    return chmod(tracer->folder, 0755) == 0 ? 0 : -errno;
}

static int name_in_folder(struct tracer *tracer, char path[PATH_MAX]) {
    static unsigned count;

    int error = make_folder(tracer);
    if (error != 0)
        return error;
    return snprintf(path, PATH_MAX, "%s/%u", tracer->folder, count++) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int binds_make_file(struct tracer *tracer, char path[PATH_MAX]) {
    int error = name_in_folder(tracer, path);
    if (error != 0)
        return error;
    int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return descriptor < 0 ? -errno : descriptor;
}

int binds_name_for(struct tracer *tracer, pid_t tid, char path[PATH_MAX]) {
    int error = make_folder(tracer);
    if (error != 0)
        return error;
    return snprintf(path, PATH_MAX, "%s/of-%d", tracer->folder, (int)tid) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int binds_make_folder(struct tracer *tracer, char path[PATH_MAX]) {
    int error = name_in_folder(tracer, path);
    if (error != 0)
        return error;
    return mkdir(path, 0755) == 0 ? 0 : -errno;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where) {
    (void)status;
    (void)type;
    (void)where;
    remove(path);
    return 0;
}

void binds_end(const struct tracer *tracer) {
    if (tracer->folder[0] != '\0')
        nftw(tracer->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- the view ---------------------------------------------------------------------------------------------------- */

static struct dd_process outside(void) {
    return (struct dd_process){.tid = getpid(), .tgid = getpid()};
}

static int resolve(const struct tracer *tracer, const char *guest, struct dd_result *result) {
    struct dd_process process = outside();

    return dd_resolve(&tracer->view, &process, NULL, guest, DD_FOLLOW, result);
}

bool binds_from_procfs(const struct tracer *tracer, const char *guest) {
    struct dd_result result;

    return resolve(tracer, guest, &result) == 0 && strcmp(result.host, guest) == 0 && access(guest, F_OK) == 0;
}

static void add(struct tracer *tracer, const char *host, const char *guest) {
    int error = dd_view_add(&tracer->view, host, guest);
    if (error != 0)
        fail("bind %s at %s: %s", host, guest, error == -E2BIG ? "too many binds" : strerror(-error));
    dd_view_finish(&tracer->view);
}

static bool is_ours(const struct tracer *tracer, const char *host) {
    size_t length = strlen(tracer->folder);

    return length > 0 && strncmp(host, tracer->folder, length) == 0;
}

/* A folder above a mount point: found, or shown from now on. `guest` becomes its canonical guest path. */
static int find_or_glue(struct tracer *tracer, char guest[PATH_MAX], struct dd_result *result) {
    char glue[PATH_MAX];

    int error = resolve(tracer, guest, result);
    if (error != 0)
        return error;
    if (result->guest_length >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(guest, result->guest, result->guest_length + 1);
    if (!result->missing)
        return 0;
    if (is_ours(tracer, result->host)) {
        error = mkdir(result->host, 0755) == 0 ? 0 : -errno;
    } else {
        error = binds_make_folder(tracer, glue);
        if (error == 0)
            add(tracer, glue, guest);
    }
    return error != 0 ? error : resolve(tracer, guest, result);
}

/* In a folder of our own the mount point itself is made, so that a listing shows it. */
static int make_mount_point(const struct tracer *tracer, const struct dd_result *result, const char *host) {
    struct stat status;

    if (!result->missing || !is_ours(tracer, result->host) || stat(host, &status) != 0)
        return 0;
    if (S_ISDIR(status.st_mode))
        return mkdir(result->host, 0755) == 0 ? 0 : -errno;
    int descriptor = open(result->host, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor < 0)
        return -errno;
    close(descriptor);
    return 0;
}

/* Walk down the guest path, component by component; `at` becomes the canonical guest path of the mount point. */
static int find_mount_point(struct tracer *tracer, const char *guest, const char *host, char at[PATH_MAX]) {
    struct dd_result result;
    size_t length = 0;

    at[0] = '\0';
    for (;;) {
        guest += strspn(guest, "/");
        size_t component = strcspn(guest, "/");
        if (component == 0)
            return 0;
        length = strlen(at);
        if (length + 1 + component >= PATH_MAX)
            return -ENAMETOOLONG;
        at[length] = '/';
        memcpy(at + length + 1, guest, component);
        at[length + 1 + component] = '\0';
        guest += component;
        if (guest[strspn(guest, "/")] == '\0')
            break;
        int error = find_or_glue(tracer, at, &result);
        if (error != 0)
            return error;
    }
    int error = resolve(tracer, at, &result);
    if (error != 0)
        return error;
    if (result.guest_length >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(at, result.guest, result.guest_length + 1);
    return make_mount_point(tracer, &result, host);
}

static void bind_requested(struct tracer *tracer, const struct requested_bind *bind) {
    char host[PATH_MAX], at[PATH_MAX];

    if (realpath(bind->host, host) == NULL)
        fail("bind %s: %s", bind->host, strerror(errno));
    int error = find_mount_point(tracer, bind->guest, host, at);
    if (error != 0)
        fail("bind %s: mount point %s: %s", bind->host, bind->guest, strerror(-error));
    add(tracer, host, at);
}

void binds_start(struct tracer *tracer) {
    const struct options *options = &tracer->options;
    struct statfs procfs;
    mode_t mask = umask(022); /* what is made here, every user of the guest may see */

    tracer->view.no_procfs = statfs("/proc", &procfs) != 0 || procfs.f_type != PROC_SUPER_MAGIC;
    if (realpath(options->root, tracer->root) == NULL)
        fail("root %s: %s", options->root, strerror(errno));
    add(tracer, tracer->root, "/");
    for (size_t n = 0; n < options->bind_count; n++)
        bind_requested(tracer, &options->binds[n]);
    int error = kernel_identity_set() ? kernel_identity_bind(tracer) : 0;
    if (error != 0)
        fail("kernel identity in /proc: %s", strerror(-error));
    umask(mask);
}
