/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The path calls of the confinement probe: each is asked for places of the guest and of the host, and judged.
 *
 * Rules of this file
 *  - One row per call. A raw row is a system call number with its arguments; a row through libc is a function of three lines.
 *  - `escape`: a place of the host was found, or one of the guest was not, or another file was found in its stead. Such a call
 *    was resolved on the host. An error that refuses the call as a whole (ENOSYS, EPERM) leaks nothing and is told by name.
 *  - A row changes nothing that it finds: it opens for reading, and sets modes to what they are.
 *  - Numbers that old kernel headers lack are given here; they are the same on all architectures (the common table, 424 up).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#ifndef __NR_open_tree
#define __NR_open_tree 428 /* linux/uapi/asm-generic/unistd.h, 5.2 */
#endif
#ifndef __NR_fspick
#define __NR_fspick 433 /* 5.2 */
#endif
#ifndef __NR_openat2
#define __NR_openat2 437 /* 5.6 */
#endif
#ifndef __NR_faccessat2
#define __NR_faccessat2 439 /* 5.8 */
#endif
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452 /* 6.6 */
#endif
#ifndef __NR_getxattrat
#define __NR_getxattrat 464 /* 6.13 */
#endif
#ifndef __NR_listxattrat
#define __NR_listxattrat 465 /* 6.13 */
#endif
#ifndef __NR_open_tree_attr
#define __NR_open_tree_attr 467 /* 6.15 */
#endif
#ifndef __NR_file_getattr
#define __NR_file_getattr 468 /* 6.17 */
#endif

#define MODE 0644 /* of every place, so that the chmod family changes nothing */

enum result { NOTHING, DESCRIPTOR, STATX, STAT };

/* Arguments that are known only when the call is made; no real argument has these values. */
enum { PATH = -1001, BUFFER = -1002, OPEN_HOW = -1003, XATTR_NAME = -1004, WATCH = -1005, MARK = -1006, EMPTY = -1007 };

static char buffer[4096];
static const uint64_t open_how[3] = {O_RDONLY | O_CLOEXEC, 0, 0}; /* linux/openat2.h: flags, mode, resolve */
static char xattr_args[16];                                        /* linux/xattr.h: value 0, size 0, flags 0 */
static int watch = -1;
static int mark = -1;

static const struct raw_call {
    const char *name;
    long number;
    long args[6];
    enum result result;
    const char *suffix;
    int found[3]; /* errors that only a path that was found can give */
} raw_calls[] = {
    {"openat",            __NR_openat,            {AT_FDCWD, PATH, O_RDONLY | O_CLOEXEC},          DESCRIPTOR, "", {0}},
    {"openat2",           __NR_openat2,           {AT_FDCWD, PATH, OPEN_HOW, sizeof open_how},     DESCRIPTOR, "", {0}},
    {"open_tree",         __NR_open_tree,         {AT_FDCWD, PATH, O_CLOEXEC},                     DESCRIPTOR, "", {0}},
    {"open_tree_attr",    __NR_open_tree_attr,    {AT_FDCWD, PATH, O_CLOEXEC, 0, 0},               DESCRIPTOR, "", {0}},
#ifdef __NR_newfstatat
    {"newfstatat",        __NR_newfstatat,        {AT_FDCWD, PATH, BUFFER, 0},                     STAT,       "", {0}},
#endif
    {"statx",             __NR_statx,             {AT_FDCWD, PATH, 0, STATX_BASIC_STATS, BUFFER},  STATX,      "", {0}},
    {"statfs",            __NR_statfs,            {PATH, BUFFER},                                  NOTHING,    "", {0}},
    {"faccessat",         __NR_faccessat,         {AT_FDCWD, PATH, R_OK},                          NOTHING,    "", {0}},
    {"faccessat2",        __NR_faccessat2,        {AT_FDCWD, PATH, R_OK, AT_EACCESS},              NOTHING,    "", {0}},
    {"fchmodat",          __NR_fchmodat,          {AT_FDCWD, PATH, MODE},                          NOTHING,    "", {0}},
    {"fchmodat2",         __NR_fchmodat2,         {AT_FDCWD, PATH, MODE, 0},                       NOTHING,    "", {0}},
    {"readlinkat",        __NR_readlinkat,        {AT_FDCWD, PATH, BUFFER, sizeof buffer},         NOTHING,    ".link", {0}},
    {"getxattr",          __NR_getxattr,          {PATH, XATTR_NAME, 0, 0},                        NOTHING,    "", {ENODATA, EOPNOTSUPP}},
    {"listxattr",         __NR_listxattr,         {PATH, 0, 0},                                    NOTHING,    "", {ENODATA, EOPNOTSUPP}},
    {"getxattrat",        __NR_getxattrat,        {AT_FDCWD, PATH, 0, XATTR_NAME, EMPTY, sizeof xattr_args}, NOTHING, "", {ENODATA, EOPNOTSUPP}},
    {"listxattrat",       __NR_listxattrat,       {AT_FDCWD, PATH, 0, 0, 0},                       NOTHING,    "", {ENODATA, EOPNOTSUPP}},
    {"file_getattr",      __NR_file_getattr,      {AT_FDCWD, PATH, BUFFER, 24, 0},                 NOTHING,    "", {EOPNOTSUPP, ENOTTY}},
    {"name_to_handle_at", __NR_name_to_handle_at, {AT_FDCWD, PATH, EMPTY, BUFFER, 0},              NOTHING,    "", {EOVERFLOW, EOPNOTSUPP}},
    {"inotify_add_watch", __NR_inotify_add_watch, {WATCH, PATH, IN_DELETE_SELF},                   NOTHING,    "", {0}},
    {"fanotify_mark",     __NR_fanotify_mark,     {MARK, FAN_MARK_ADD, FAN_CLOSE_WRITE, AT_FDCWD, PATH}, NOTHING, "", {ENODEV, EXDEV, EOPNOTSUPP}},
    {"fspick",            __NR_fspick,            {AT_FDCWD, PATH, 0},                             NOTHING,    "", {EINVAL}},
};

static int libc_stat(const char *path, struct stat *identity)
{
    return stat(path, identity) == 0 ? 0 : errno;
}

static int libc_lstat(const char *path, struct stat *identity)
{
    return lstat(path, identity) == 0 ? 0 : errno;
}

static int libc_open(const char *path, struct stat *identity)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return errno;
    int error = fstat(descriptor, identity) == 0 ? 0 : errno;
    close(descriptor);
    return error;
}

static int libc_access(const char *path, struct stat *identity)
{
    (void) identity;
    return access(path, R_OK) == 0 ? 0 : errno;
}

static int libc_realpath(const char *path, struct stat *identity)
{
    char resolved[PATH_MAX];
    (void) identity;
    return realpath(path, resolved) != NULL ? 0 : errno;
}

static int libc_readlink(const char *path, struct stat *identity)
{
    (void) identity;
    return readlink(path, buffer, sizeof buffer) >= 0 ? 0 : errno;
}

/* Run the program in a child; an error of the exec call comes back through a pipe that the exec closes. */
static int run(const char *path, bool raw)
{
    char *const arguments[] = {(char *) path, (char *) "exit", (char *) "0", NULL};
    char *const environment[] = {NULL};
    int ends[2], error = 0, status;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    pid_t child = fork();
    if (child == 0) {
        if (raw)
            syscall(__NR_execveat, AT_FDCWD, path, arguments, environment, 0);
        else
            execve(path, arguments, environment);
        error = errno;
        _exit(write(ends[1], &error, sizeof error) == sizeof error ? 1 : 2);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &error, sizeof error) < 0)
        error = errno;
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return error;
}

static int libc_execve(const char *path, struct stat *identity)
{
    (void) identity;
    return run(path, false);
}

static int raw_execveat(const char *path, struct stat *identity)
{
    (void) identity;
    return run(path, true);
}

static const struct libc_call {
    const char *name;
    int (*call)(const char *path, struct stat *identity); /* 0 or the error; fills the identity where it knows it */
    const char *suffix;
} libc_calls[] = {
    {"libc:stat", libc_stat, ""},         {"libc:lstat", libc_lstat, ""},           {"libc:open", libc_open, ""},
    {"libc:access", libc_access, ""},     {"libc:realpath", libc_realpath, ""},     {"libc:readlink", libc_readlink, ".link"},
    {"libc:execve", libc_execve, ".program"}, {"execveat", raw_execveat, ".program"},
};

static long argument(long value, const char *path)
{
    switch (value) {
    case PATH:
        return (long) path;
    case BUFFER:
        return (long) buffer;
    case OPEN_HOW:
        return (long) open_how;
    case XATTR_NAME:
        return (long) "user.droiddeck";
    case WATCH:
        return watch;
    case MARK:
        return mark;
    case EMPTY:
        return (long) memset(xattr_args, 0, sizeof xattr_args);
    default:
        return value;
    }
}

static int identity_by_result(enum result result, long answer, struct stat *identity)
{
    struct statx found;
    int error = 0;
    switch (result) {
    case DESCRIPTOR:
        error = fstat((int) answer, identity) == 0 ? 0 : errno;
        close((int) answer);
        return error;
    case STATX:
        memcpy(&found, buffer, sizeof found);
        identity->st_ino = found.stx_ino;
        identity->st_dev = makedev(found.stx_dev_major, found.stx_dev_minor);
        return 0;
    case STAT:
        memcpy(identity, buffer, sizeof *identity);
        return 0;
    case NOTHING:
    default:
        return 0;
    }
}

static int ask_raw(const struct raw_call *row, const char *path, struct stat *identity)
{
    long args[6];
    for (int i = 0; i < 6; i++)
        args[i] = argument(row->args[i], path);
    errno = 0;
    long answer = syscall(row->number, args[0], args[1], args[2], args[3], args[4], args[5]);
    int error = errno;
    if (answer >= 0)
        return identity_by_result(row->result, answer, identity);
    for (int i = 0; i < 3 && row->found[i] != 0; i++)
        if (error == row->found[i])
            return 0;
    return error;
}

/* The verdict for one place: 0 for what a mount namespace would answer, -1 for an escape, else the error that refused it. */
static int judge(const struct place *place, int error, const struct stat *identity)
{
    if (!place->of_the_guest)
        return error == 0 ? -1 : error == ENOENT ? 0 : error;
    if (error == ENOENT)
        return -1;
    if (error == 0 && identity->st_ino != 0 && (identity->st_ino != place->inode || identity->st_dev != place->device))
        return -1;
    return error;
}

static void print_verdict(const char *name, const char *suffix, const struct libc_call *through, const struct raw_call *raw,
                          const struct place *places, size_t count, const char *lead)
{
    int verdict = 0;
    for (size_t i = 0; i < count && verdict != -1; i++) {
        char path[PATH_MAX];
        struct stat identity = {0};
        if (snprintf(path, sizeof path, "%s%s", places[i].name, suffix) >= (int) sizeof path)
            continue;
        int error = through != NULL ? through->call(path, &identity) : ask_raw(raw, path, &identity);
        int here = judge(&places[i], error, &identity);
        if (here != 0)
            verdict = here;
    }
    const char *word = verdict == 0 ? "ok" : verdict < 0 ? "escape" : strerrorname_np(verdict);
    printf("%s\"%s\": \"%s\"", lead, name, word != NULL ? word : "error");
}

void print_calls(const struct place *places, size_t count)
{
    const char *lead = "";
    watch = inotify_init1(IN_CLOEXEC);
    mark = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_REPORT_FID, O_RDONLY);
    printf("\"calls\": {");
    for (size_t i = 0; i < sizeof libc_calls / sizeof libc_calls[0]; i++, lead = ", ")
        print_verdict(libc_calls[i].name, libc_calls[i].suffix, &libc_calls[i], NULL, places, count, lead);
    for (size_t i = 0; i < sizeof raw_calls / sizeof raw_calls[0]; i++, lead = ", ")
        print_verdict(raw_calls[i].name, raw_calls[i].suffix, NULL, &raw_calls[i], places, count, lead);
    printf("}");
}
