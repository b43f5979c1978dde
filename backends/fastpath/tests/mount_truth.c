/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The kernel's truth for the resolver's tests: a private mount namespace with the same binds, and chroot. Commands on
 * stdin, answers on stdout (driver_lines.h). Needs root.
 *
 *   enter ROOT EMPTY      a copy of ROOT's mount at the folder EMPTY, and chroot there     -> 0 or -errno
 *   mount HOST GUEST      binds; HOST is looked up outside, whatever is mounted inside      -> 0 or -errno
 *   user UID              setresuid                                                         -> 0
 *   cwd GUEST             chdir                                                             -> getcwd's, or -errno
 *   look follow|nofollow PATH    -> DEV:INODE:MODE or -errno
 *   readlink PATH         -> TEXT or -errno
 *   mkdir PATH | create PATH     makes it, says DEV:INODE:MODE, takes it away again; create: O_CREAT, following links
 */
#define _GNU_SOURCE
#include "driver_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <linux/mount.h> /* OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MS_REC
#define MS_REC 0x4000         /* linux/mount.h */
#define MS_PRIVATE (1 << 18)
#endif
int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);

static int outside; /* the host's root */

static int copy_mount(const char *host) {
    while (*host == '/')
        host++;
    return (int)syscall(SYS_open_tree, outside, *host != '\0' ? host : ".", OPEN_TREE_CLONE | O_CLOEXEC);
}

static int place_mount(const char *host, const char *target) {
    int tree = copy_mount(host), error = 0;

    if (tree < 0)
        return -errno;
    if (syscall(SYS_move_mount, tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS) != 0)
        error = -errno;
    close(tree);
    return error;
}

static int enter(const char *root, const char *empty) {
    int error;

    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return -errno;
    outside = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (outside < 0)
        return -errno;
    if ((error = place_mount(root, empty)) != 0)
        return error;
    return chdir(empty) != 0 || chroot(".") != 0 ? -errno : 0;
}

static void put_stat(int error, const struct stat *found) {
    if (error != 0)
        printf("%d", -errno);
    else
        printf("%lx:%lx:%o", (unsigned long)found->st_dev, (unsigned long)found->st_ino, found->st_mode);
}

static void make_directory(const char *path) {
    struct stat made;
    int error = mkdir(path, 0755);

    if (error == 0)
        error = lstat(path, &made);
    put_stat(error, &made);
    if (error == 0 && rmdir(path) != 0)
        printf(" %d", -errno);
}

/* As O_CREAT makes it, which follows links: so what was made has to be found before it can be removed. The driver
 * knows. */
static void create(const char *path) {
    struct stat made;
    int descriptor = open(path, O_PATH | O_CLOEXEC), error;

    if (descriptor >= 0) {
        close(descriptor);
        errno = EEXIST;
        put_stat(-1, &made);
        return;
    }
    descriptor = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    error = descriptor < 0 ? -1 : fstat(descriptor, &made);
    put_stat(error, &made);
    if (descriptor >= 0)
        close(descriptor);
}

static void run(struct driver_line *line) {
    const char *command = line->words[0], *one, *two;
    char text[PATH_MAX];
    struct stat found;
    if (strcmp(command, "user") == 0) {
        uid_t user = (uid_t)driver_number(line, 1);

        printf("%d", setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0 ? -errno : 0);
        return;
    }
    if (strcmp(command, "look") == 0) {
        int follow = strcmp(line->words[1], "follow") == 0;

        one = driver_string(line, 2);
        put_stat(follow ? stat(one, &found) : lstat(one, &found), &found);
        return;
    }
    one = driver_string(line, 1);
    two = driver_string(line, 2);
    if (strcmp(command, "enter") == 0)
        printf("%d", enter(one, two));
    else if (strcmp(command, "mount") == 0)
        printf("%d", place_mount(one, two));
    else if (strcmp(command, "cwd") == 0) {
        if (chdir(one) != 0 || getcwd(text, sizeof text) == NULL)
            printf("%d", -errno);
        else
            driver_put(text, strlen(text));
    } else if (strcmp(command, "readlink") == 0) {
        ssize_t length = readlink(one, text, sizeof text);

        if (length < 0)
            printf("%d", -errno);
        else
            driver_put(text, (size_t)length);
    } else if (strcmp(command, "mkdir") == 0)
        make_directory(one);
    else if (strcmp(command, "create") == 0)
        create(one);
    else
        printf("? %s", command);
}

int main(void) {
    struct driver_line line = {0};

    while (driver_read(&line)) {
        if (line.count > 0)
            run(&line);
        putchar('\n');
        fflush(stdout);
    }
    free(line.text);
    return 0;
}
