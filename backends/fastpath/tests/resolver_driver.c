/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Drives the resolver from a test: commands on stdin, answers on stdout (driver_lines.h).
 *
 *   bind HOST GUEST              adds to the view as it is                 -> 0 or -errno
 *   mount HOST GUEST             the same, the guest path looked up first  -> GUEST, or -errno (-EBUSY: covers a mount)
 *   process TID TGID             who asks                                  -> 0
 *   exe PID GUEST                a guest process and its executable        -> 0
 *   procfs 0|1                   whether the host's /proc counts as one    -> 0
 *   user UID                     setresuid                                 -> 0
 *   resolve MODE CACHED BASE PATH   -> -errno, or 0 HOST GUEST FLAGS NAME_LENGTH MOUNT LINKS
 *   look MODE CACHED BASE PATH      -> -errno, or FLAGS DEV:INODE:MODE|-errno GUEST: of what the host path leads to
 *   mkdir|create BASE PATH       makes what it would make, says what it was (HOST DEV:INODE), takes it away again
 *   guest HOST                   host path in guest terms                  -> GUEST or -1
 *   link HOST                    a link as a guest reads it                -> TEXT or -errno
 *   cache                        hits, misses and held descriptors
 *   time COUNT MODE CACHED BASE PATH   nanoseconds for one resolution
 *
 * MODE is follow, nofollow or parent; FLAGS are letters: c(hanged) m(agic) x (missing) p (mount point) o(utside)
 * d (caller-dependent) u(p); ! the text was to be left alone, but the kernel's own walk of it leads elsewhere.
 */
#define _GNU_SOURCE
#include "../resolver/dir_cache.h"
#include "../resolver/sys.h"
#include "driver_lines.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct dd_view view;
static struct dd_dir_cache cache;
static struct dd_result result;
static struct {
    pid_t pid;
    char path[PATH_MAX];
} exes[8];
static size_t exe_count;

static int guest_exe(const struct dd_process *process, pid_t pid, char *buffer, size_t size) {
    (void)process;
    for (size_t n = 0; n < exe_count; n++)
        if (exes[n].pid == pid && strlen(exes[n].path) < size) {
            strcpy(buffer, exes[n].path);
            return (int)strlen(buffer);
        }
    return -ESRCH;
}

static struct dd_process process = {.guest_exe = guest_exe};

static enum dd_mode mode_of(const char *word) {
    return strcmp(word, "follow") == 0 ? DD_FOLLOW : strcmp(word, "nofollow") == 0 ? DD_NOFOLLOW : DD_PARENT;
}

static int resolve(enum dd_mode mode, bool cached, const char *base, const char *path) {
    if (cached)
        return dd_resolve_cached(&cache, &view, &process, base, path, mode, &result);
    return dd_resolve(&view, &process, base, path, mode, &result);
}

/* ---- what a host path leads to ----------------------------------------------------------------------------------- */

struct identity {
    int error;
    struct stat stat;
};

/* No link may be left on the way, or the kernel would follow it in host terms. */
static struct identity at(int directory, const char *path, enum dd_mode mode, bool links_allowed) {
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | (mode == DD_FOLLOW ? 0 : O_NOFOLLOW),
                           .resolve = links_allowed ? 0 : RESOLVE_NO_SYMLINKS};
    struct identity found = {0};
    const char *rest = path;
    bool is_long = strlen(path) >= PATH_MAX;
    int descriptor;

    if (is_long && (directory = dd_host_parent(path, &rest)) < 0) {
        found.error = directory;
        return found;
    }
    descriptor = (int)syscall(SYS_openat2, directory, rest, &how, sizeof how);
    if (descriptor < 0 || fstat(descriptor, &found.stat) != 0)
        found.error = -errno;
    if (descriptor >= 0)
        close(descriptor);
    if (is_long)
        close(directory);
    return found;
}

static bool same(const struct identity *one, const struct identity *other) {
    return one->error == other->error && one->stat.st_dev == other->stat.st_dev &&
           one->stat.st_ino == other->stat.st_ino;
}

/* What the kernel makes of the path as it was given. */
static struct identity untouched(const char *base, const char *path, enum dd_mode mode) {
    struct identity found = {0};
    int directory = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (directory < 0) {
        found.error = -errno;
        return found;
    }
    found = at(directory, path, mode, false);
    close(directory);
    return found;
}

static void put_flags(bool wrong) {
    const bool is[] = {result.changed, result.magic,   result.missing, result.mount_point,
                       result.outside, result.caller_dependent, result.up,   wrong};

    putchar('.');
    for (size_t n = 0; n < sizeof is / sizeof is[0]; n++)
        if (is[n])
            putchar("cmxpodu!"[n]);
    putchar(' ');
}

static void put_identity(const struct identity *found) {
    if (found->error != 0)
        printf("%d", found->error);
    else
        printf("%lx:%lx:%o", (unsigned long)found->stat.st_dev, (unsigned long)found->stat.st_ino, found->stat.st_mode);
}

static void look(enum dd_mode mode, bool cached, const char *base, const char *path) {
    int error = resolve(mode, cached, base, path);
    struct identity found, plain;

    if (error != 0) {
        printf("%d", error);
        return;
    }
    found = at(AT_FDCWD, result.host, mode, result.magic);
    plain = result.changed || path[0] == '/' ? found : untouched(base, path, mode);
    put_flags(!same(&found, &plain));
    put_identity(&found);
    putchar(' ');
    driver_put(result.guest, result.guest_length);
}

static void show(enum dd_mode mode, bool cached, const char *base, const char *path) {
    int error = resolve(mode, cached, base, path);

    printf("%d ", error);
    if (error != 0)
        return;
    driver_put(result.host, result.host_length);
    putchar(' ');
    driver_put(result.guest, result.guest_length);
    putchar(' ');
    put_flags(false);
    printf("%zu %d %u", result.name_length, result.mount, result.links);
}

static void make(bool directory, const char *base, const char *path) {
    struct identity made;
    int error = resolve(directory ? DD_PARENT : DD_FOLLOW, false, base, path), descriptor;

    if (error == 0 && directory)
        error = result.mount_point ? -EEXIST : mkdir(result.host, 0755) != 0 ? -errno : 0;
    else if (error == 0 && !result.missing)
        error = -EEXIST;
    else if (error == 0) {
        descriptor = open(result.host, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
        error = descriptor < 0 ? -errno : 0;
        if (descriptor >= 0)
            close(descriptor);
    }
    printf("%d", error);
    if (error != 0)
        return;
    made = at(AT_FDCWD, result.host, DD_NOFOLLOW, false);
    putchar(' ');
    driver_put(result.host, result.host_length);
    putchar(' ');
    put_identity(&made);
    if (directory ? rmdir(result.host) : unlink(result.host))
        printf(" %d", -errno);
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static int covers_a_mount(const char *guest, size_t length) {
    for (size_t n = 0; n < view.count; n++)
        if (view.binds[n].guest_length > length && memcmp(view.binds[n].guest, guest, length) == 0 &&
            view.binds[n].guest[length] == '/')
            return 1;
    return 0;
}

static void mount_bind(const char *host, const char *guest) {
    int error = resolve(DD_FOLLOW, false, NULL, guest);

    if (error == 0 && covers_a_mount(result.guest, result.guest_length))
        error = -EBUSY;
    if (error == 0 && (error = dd_view_add(&view, host, result.guest)) == 0)
        dd_view_finish(&view);
    if (error != 0)
        printf("%d", error);
    else
        driver_put(result.guest, result.guest_length);
}

static void add_exe(pid_t pid, const char *guest) {
    size_t n = 0;

    while (n < exe_count && exes[n].pid != pid)
        n++;
    if (n == sizeof exes / sizeof exes[0])
        exit(2);
    if (n == exe_count)
        exe_count++;
    exes[n].pid = pid;
    strncpy(exes[n].path, guest, sizeof exes[n].path - 1);
}

static double seconds(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void time_it(long count, enum dd_mode mode, bool cached, const char *base, const char *path) {
    double start = seconds();

    for (long n = 0; n < count; n++)
        resolve(mode, cached, base, path);
    printf("%.1f", (seconds() - start) / (double)count * 1e9);
}

static void time_names(long count, const char *host) {
    char guest[DD_PATH_BUFFER];
    size_t length = strlen(host);
    double start = seconds();
    long sum = 0;

    for (long n = 0; n < count; n++)
        sum += dd_guest_name(&view, host, length, guest);
    printf("%.1f %ld", (seconds() - start) / (double)count * 1e9, sum);
}

static void time_mounts(long count, const char *guest) {
    size_t length = strlen(guest);
    double start = seconds();
    long sum = 0;

    for (long n = 0; n < count; n++) {
        __asm__ volatile("" : "+r"(guest));
        sum += dd_view_mount_at(&view, guest, length);
    }
    printf("%.1f %ld", (seconds() - start) / (double)count * 1e9, sum);
}

static void guest_name(const char *host) {
    char guest[DD_PATH_BUFFER];
    int length = dd_guest_name(&view, host, strlen(host), guest);

    if (length < 0)
        printf("%d", length);
    else
        driver_put(guest, (size_t)length);
}

static void read_link(const char *host) {
    char text[DD_PATH_BUFFER];
    int length = dd_proc_link(&view, &process, host, &result.work, text);

    if (length < 0)
        printf("%d", length);
    else
        driver_put(text, (size_t)length);
}

static void run(struct driver_line *line) {
    const char *command = line->words[0], *one, *two;

    if (strcmp(command, "resolve") == 0 || strcmp(command, "look") == 0) {
        enum dd_mode mode = mode_of(line->words[1]);
        bool cached = driver_number(line, 2) != 0;

        one = driver_string(line, 3);
        two = driver_string(line, 4);
        (command[0] == 'l' ? look : show)(mode, cached, one, two);
        return;
    }
    if (strcmp(command, "time") == 0) {
        long count = driver_number(line, 1);
        enum dd_mode mode = mode_of(line->words[2]);
        bool cached = driver_number(line, 3) != 0;

        one = driver_string(line, 4);
        two = driver_string(line, 5);
        time_it(count, mode, cached, one, two);
        return;
    }
    if (strcmp(command, "time_names") == 0 || strcmp(command, "time_mounts") == 0) {
        long count = driver_number(line, 1);

        (command[5] == 'n' ? time_names : time_mounts)(count, driver_string(line, 2));
        return;
    }
    if (strcmp(command, "process") == 0) {
        process.tid = (pid_t)driver_number(line, 1);
        process.tgid = (pid_t)driver_number(line, 2);
        printf("0");
    } else if (strcmp(command, "exe") == 0) {
        add_exe((pid_t)driver_number(line, 1), driver_string(line, 2));
        printf("0");
    } else if (strcmp(command, "procfs") == 0) {
        view.no_procfs = driver_number(line, 1) == 0;
        printf("0");
    } else if (strcmp(command, "user") == 0) {
        uid_t user = (uid_t)driver_number(line, 1);

        printf("%d", setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0 ? -errno : 0);
    } else if (strcmp(command, "cache") == 0) {
        printf("%lu %lu %zu", cache.hits, cache.misses, dd_dir_cache_held(&cache));
    } else {
        one = driver_string(line, 1);
        two = driver_string(line, 2);
        if (strcmp(command, "bind") == 0) {
            printf("%d", dd_view_add(&view, one, two));
            dd_view_finish(&view);
        } else if (strcmp(command, "mount") == 0)
            mount_bind(one, two);
        else if (strcmp(command, "mkdir") == 0 || strcmp(command, "create") == 0)
            make(command[0] == 'm', one, two);
        else if (strcmp(command, "guest") == 0)
            guest_name(one);
        else if (strcmp(command, "link") == 0)
            read_link(one);
        else
            printf("? %s", command);
    }
}

int main(void) {
    struct driver_line line = {0};

    dd_dir_cache_open(&cache, INT_MAX);
    while (driver_read(&line)) {
        if (line.count > 0)
            run(&line);
        putchar('\n');
        fflush(stdout);
    }
    dd_dir_cache_close(&cache);
    free(line.text);
    return 0;
}
