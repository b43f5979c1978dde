/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Binds as mounts: the checks of the kernel's fs/namei.c that it cannot make, since it knows of no mount there.
 *
 * Rules of this file
 *  - The order of the checks is the kernel's (do_renameat2 and vfs_rename, do_linkat, do_unlinkat, do_rmdir,
 *    may_delete).
 *  - A name that ends in "." or ".." is left to the kernel, which refuses it; only that the two sides lie in two mounts
 *    it does not see.
 *  - One thing differs: the kernel's mounts move with a folder above them, binds cannot. Such a folder is refused as if
 *    it were the mount point (EBUSY).
 */
#define _GNU_SOURCE
#include "mount_points.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "call.h"
#include "host_path.h"
#include "path_calls.h"
#include "tracer.h"
#include "translate.h"

/* The mode of what lstat(2) finds at a host path of any length. 0 or -errno. */
static int mode_at(const char *host, mode_t *mode) {
    struct stat status;
    int directory;
    const char *path;

    *mode = 0;
    int error = host_path_open(host, &directory, &path);
    if (error != 0)
        return error;
    error = fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
    host_path_close(directory);
    if (error == 0)
        *mode = status.st_mode;
    return error;
}

/* The same of what has this name, without the slash or dots that come after it. */
static int mode_of(const struct dd_result *result, mode_t *mode) {
    char host[DD_PATH_BUFFER];

    size_t length = result->name_length > 0 ? result->name_length : 1; /* "/" */
    memcpy(host, result->host, length);
    host[length] = '\0';
    return mode_at(host, mode);
}

static bool ends_in_slash(const struct dd_result *result) {
    return result->host_length > result->name_length && result->host[result->host_length - 1] == '/';
}

static bool ends_in_dots(const struct dd_result *result) {
    return result->host_length > result->name_length && result->host[result->host_length - 1] == '.';
}

/* Whether a bind lies below this name. */
static bool has_mounts_below(const struct call *call, const struct dd_result *result) {
    const struct dd_view *view = &call->tracer->view;

    if (result->outside || ends_in_dots(result))
        return false;
    for (size_t n = 0; n < view->count && view->binds[n].guest_length > result->guest_length; n++)
        if (view->binds[n].guest[result->guest_length] == '/' &&
            memcmp(view->binds[n].guest, result->guest, result->guest_length) == 0)
            return true;
    return false;
}

static bool is_mount_point(const struct dd_result *result) {
    return result->mount_point && !ends_in_dots(result);
}

/* ---- two mounts -------------------------------------------------------------------------------------------------- */

/* What a name lies in must be a directory, or the lookup fails before mounts are compared: x of "x/y", "x/.", "x/..".
 * */
static int check_folder(const struct dd_result *result) {
    char host[DD_PATH_BUFFER];
    size_t length = result->name_length;
    mode_t mode;

    memcpy(host, result->host, length);
    while (!ends_in_dots(result) && length > 0 && host[--length] != '/')
        ;
    host[length] = '\0';
    if (length == 0)
        return 0;
    int error = mode_at(host, &mode);
    if (error != 0)
        return error;
    return S_ISDIR(mode) ? 0 : -ENOTDIR;
}

/* For rename a removed directory (somebody's working directory still) is one. */
static int check_rename_folder(const struct dd_result *result) {
    int error = check_folder(result);
    return error != -ENOENT ? error : 0;
}

static int check_folders(const struct dd_result results[2]) {
    int error = check_rename_folder(&results[0]);
    return error != 0 ? error : check_rename_folder(&results[1]);
}

static int refuse_rename_between(const struct dd_result results[2]) {
    int error = check_folders(results);
    return error != 0 ? error : -EXDEV;
}

static int refuse_link_between(const struct dd_result results[2]) {
    mode_t mode;

    int error = mode_at(results[0].host, &mode);
    if (error != 0)
        return error;
    error = check_folder(&results[1]);
    if (error != 0)
        return error;
    if (ends_in_dots(&results[1]) || mode_of(&results[1], &mode) == 0)
        return -EEXIST;
    return ends_in_slash(&results[1]) ? -ENOENT : -EXDEV;
}

/* ---- mount points ------------------------------------------------------------------------------------------------ */

/* unlink, rmdir. */
static int refuse_removal(bool of_directory, const struct dd_result *result) {
    mode_t mode;

    int error = mode_of(result, &mode);
    if (error != 0)
        return error;
    if (of_directory)
        return S_ISDIR(mode) ? -EBUSY : -ENOTDIR;
    if (S_ISDIR(mode))
        return -EISDIR;
    return ends_in_slash(result) ? -ENOTDIR : -EBUSY;
}

static bool is_above(const struct dd_result *upper, const struct dd_result *lower) {
    return lower->name_length > upper->name_length && lower->host[upper->name_length] == '/' &&
           memcmp(lower->host, upper->host, upper->name_length) == 0;
}

/* rename, where all else would be well: `last` is the error. */
static int refuse_rename(uint64_t flags, const struct dd_result results[2], int last) {
    bool exchange = (flags & RENAME_EXCHANGE) != 0;
    mode_t from, to;

    int error = check_folders(results);
    if (error == 0)
        error = mode_of(&results[0], &from);
    if (error != 0)
        return error;
    bool exists = mode_of(&results[1], &to) == 0;
    if (exists && (flags & RENAME_NOREPLACE) != 0)
        return -EEXIST;
    if (exchange && !exists)
        return -ENOENT;
    if (exchange && !S_ISDIR(to) && ends_in_slash(&results[1]))
        return -ENOTDIR;
    if (!S_ISDIR(from) && (ends_in_slash(&results[0]) || (!exchange && ends_in_slash(&results[1]))))
        return -ENOTDIR;
    if (is_above(&results[0], &results[1]))
        return -EINVAL;
    if (is_above(&results[1], &results[0]))
        return exchange ? -EINVAL : -ENOTEMPTY;
    if (results[0].name_length == results[1].name_length &&
        memcmp(results[0].host, results[1].host, results[0].name_length) == 0)
        return 0; /* nothing to do, before anybody asks what it is */
    if (!exists || exchange)
        return last;
    if (S_ISDIR(from) && !S_ISDIR(to))
        return -ENOTDIR;
    return !S_ISDIR(from) && S_ISDIR(to) ? -EISDIR : last;
}

static int refuse_rename_within(const struct call *call, const struct path_call *row,
                                const struct dd_result results[2]) {
    uint64_t flags = path_flags(call, &row->paths[0]);

    if (ends_in_dots(&results[0]) || ends_in_dots(&results[1]))
        return 0;
    if (is_mount_point(&results[0]) || is_mount_point(&results[1]) || has_mounts_below(call, &results[0]))
        return refuse_rename(flags, results, -EBUSY);
    if (has_mounts_below(call, &results[1]))
        return refuse_rename(flags, results, (flags & RENAME_EXCHANGE) != 0 ? -EBUSY : -ENOTEMPTY);
    return 0;
}

static int refuse_remove(const struct call *call, const struct path_call *row, const struct dd_result *result) {
    bool of_directory = (row->traits & OF_DIRECTORY) != 0 || (path_flags(call, &row->paths[0]) & AT_REMOVEDIR) != 0;

    if (is_mount_point(result))
        return refuse_removal(of_directory, result);
    return of_directory && has_mounts_below(call, result) ? -ENOTEMPTY : 0;
}

/* The mount in which the file of a procfs link lies ("/proc/self/fd/N" of an O_TMPFILE); -1: nobody can tell. */
static int mount_of_magic(const struct call *call, const struct dd_result *result) {
    static const char deleted[] = " (deleted)";
    const struct dd_view *view = &call->tracer->view;
    char host[PATH_MAX], guest[DD_PATH_BUFFER];

    ssize_t length = readlink(result->host, host, sizeof(host));
    if (length <= 0 || host[0] != '/')
        return -1;
    if ((size_t)length > strlen(deleted) && memcmp(host + length - strlen(deleted), deleted, strlen(deleted)) == 0)
        length -= (ssize_t)strlen(deleted);
    int guest_length = dd_guest_name(view, host, (size_t)length, guest);
    for (size_t n = 0; guest_length >= 0 && n < view->count; n++) {
        const struct dd_bind *bind = &view->binds[n]; /* the longest guest path first */
        if (bind->guest_length <= (size_t)guest_length && memcmp(bind->guest, guest, bind->guest_length) == 0 &&
            (guest[bind->guest_length] == '/' || guest[bind->guest_length] == '\0'))
            return (int)n;
    }
    return -1;
}

static bool lie_in_two_mounts(const struct call *call, const struct dd_result results[2]) {
    int mount = results[0].magic ? mount_of_magic(call, &results[0]) : results[0].mount;

    return mount != results[1].mount && !(results[0].magic && mount < 0);
}

int mount_points_first_error(const struct path_call *row, const struct dd_result *first, int second_error) {
    mode_t mode;
    int error = 0;

    if ((row->traits & LINKS) != 0)
        error = mode_at(first->host, &mode);
    else if ((row->traits & RENAMES) != 0)
        error = check_rename_folder(first);
    return error != 0 ? error : second_error;
}

int mount_points_refuse(const struct call *call, const struct path_call *row, const struct dd_result results[2]) {
    bool between = (row->traits & (RENAMES | LINKS)) != 0 && lie_in_two_mounts(call, results);

    if ((row->traits & RENAMES) != 0)
        return between ? refuse_rename_between(results) : refuse_rename_within(call, row, results);
    if (between)
        return refuse_link_between(results);
    if ((row->traits & REMOVES) != 0)
        return refuse_remove(call, row, &results[0]);
    if ((row->traits & MAKES) == 0 || !is_mount_point(&results[row->paths[1].path != 0]))
        return 0;
    return mount_points_first_error(row, &results[0], -EEXIST);
}
