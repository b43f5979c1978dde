/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How long one path call takes, and how long a program.
 *
 *     calls FOLDER SECONDS           times each call for about SECONDS: two JSON objects by name, a line each:
 *                                    microseconds, and how often one call had to wait for somebody
 *     calls run PROGRAM [WORD]...    runs a program, its output to /dev/null: milliseconds
 *
 * Rules of this file
 *  - Every call goes by syscall(2), so that no library answers in its place and none adds calls of its own.
 *  - A call is timed in batches, and the least of the batches' means counts: what a machine adds, it adds to the others.
 *  - FOLDER is made and filled here, deep enough that a path has as many components as those of a Steam library.
 *  - A call that fails where it should not is null: the time of an error is not the time of the call.
 *  - Each stop for a tracer is one voluntary context switch (getrusage(2), ru_nvcsw): how often a call waits, less how
 *    often it does so without a tracer, is how often it is stopped. Its children's waits are the call's.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 15
#define COUNTED 64 /* calls whose waits are counted */
#define FIRST_BATCH 16
#define MOST_THREADS 4
#define ENTRIES 20
#define BELOW "a/b/c/d/e/f"

static char shallow[4096], deep[4096], renamed[4096], missing[4096], missing_folder[4096], link_path[4096], folder[4096];
static int dirfd_of_folder;
static char buffer[8192];

static void must(bool good, const char *what) {
    if (!good) {
        fprintf(stderr, "calls: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static bool fails_with(long result, int error) {
    return result == -1 && errno == error;
}

static bool call_getppid(void) {
    return syscall(SYS_getppid) > 0;
}

static bool call_fstat(void) {
    return syscall(SYS_fstat, dirfd_of_folder, buffer) == 0;
}

static bool call_stat_shallow(void) {
    return syscall(SYS_newfstatat, AT_FDCWD, shallow, buffer, 0) == 0;
}

static bool call_stat_deep(void) {
    return syscall(SYS_newfstatat, AT_FDCWD, deep, buffer, 0) == 0;
}

static bool call_open_close(void) {
    int opened = (int)syscall(SYS_openat, AT_FDCWD, deep, O_RDONLY | O_CLOEXEC);
    return opened >= 0 && close(opened) == 0;
}

static bool call_access(void) {
    return syscall(SYS_faccessat, AT_FDCWD, deep, R_OK) == 0;
}

static bool call_missing(void) {
    return fails_with(syscall(SYS_newfstatat, AT_FDCWD, missing, buffer, 0), ENOENT);
}

static bool call_missing_folder(void) {
    return fails_with(syscall(SYS_newfstatat, AT_FDCWD, missing_folder, buffer, 0), ENOENT);
}

static bool call_fstatat_dirfd(void) {
    return syscall(SYS_newfstatat, dirfd_of_folder, "file", buffer, 0) == 0;
}

static bool call_statx_deep(void) {
    return syscall(SYS_statx, AT_FDCWD, deep, 0, STATX_BASIC_STATS, buffer) == 0;
}

static bool call_readlink(void) {
    return syscall(SYS_readlinkat, AT_FDCWD, link_path, buffer, sizeof(buffer)) > 0;
}

static bool call_readlink_exe(void) {
    return syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", buffer, sizeof(buffer)) > 0;
}

static bool call_getcwd(void) {
    return syscall(SYS_getcwd, buffer, sizeof(buffer)) > 0;
}

static bool call_opendir(void) {
    int opened = (int)syscall(SYS_openat, AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (syscall(SYS_getdents64, opened, buffer, sizeof(buffer)) > 0)
        ;
    return opened >= 0 && close(opened) == 0;
}

static bool call_mkdir_rmdir(void) {
    return syscall(SYS_mkdirat, AT_FDCWD, missing, 0755) == 0 &&
           syscall(SYS_unlinkat, AT_FDCWD, missing, AT_REMOVEDIR) == 0;
}

static bool call_rename(void) {
    return syscall(SYS_renameat2, AT_FDCWD, deep, AT_FDCWD, renamed, 0) == 0 &&
           syscall(SYS_renameat2, AT_FDCWD, renamed, AT_FDCWD, deep, 0) == 0;
}

static bool call_chdir(void) {
    return syscall(SYS_chdir, folder) == 0;
}

static bool call_fork_exec(void) {
    pid_t child = fork();
    int status;
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void *no_work(void *unused) {
    return unused;
}

static bool call_thread(void) {
    pthread_t thread;
    return pthread_create(&thread, NULL, no_work, NULL) == 0 && pthread_join(thread, NULL) == 0;
}

static const struct {
    const char *name;
    bool (*call)(void);
} calls[] = {
    {"getppid", call_getppid},
    {"fstat", call_fstat},
    {"stat shallow", call_stat_shallow},
    {"stat deep", call_stat_deep},
    {"open+close", call_open_close},
    {"access", call_access},
    {"missing", call_missing},
    {"missing dir", call_missing_folder},
    {"fstatat dirfd", call_fstatat_dirfd},
    {"statx deep", call_statx_deep},
    {"readlink", call_readlink},
    {"readlink exe", call_readlink_exe},
    {"getcwd", call_getcwd},
    {"opendir+readdir", call_opendir},
    {"mkdir+rmdir", call_mkdir_rmdir},
    {"rename twice", call_rename},
    {"chdir", call_chdir},
    {"thread create+join", call_thread},
    {"fork+exec", call_fork_exec},
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double batch(bool (*call)(void), long count) {
    double start = now();
    for (long i = 0; i < count; i++)
        call();
    return now() - start;
}

/* Microseconds of one call: batches of one size, chosen so that all together take the time that is given. */
static double timed(bool (*call)(void), double seconds) {
    double first = batch(call, FIRST_BATCH) / FIRST_BATCH, least = 1e9;
    long count = (long)(seconds / BATCHES / first);
    if (count < 1)
        count = 1;
    for (int i = 0; i < BATCHES; i++) {
        double mean = batch(call, count) / (double)count;
        if (mean < least)
            least = mean;
    }
    return least * 1e6;
}

static long waits(int who) {
    struct rusage usage;
    must(getrusage(who, &usage) == 0, "getrusage");
    return usage.ru_nvcsw;
}

static double waits_of_one(bool (*call)(void)) {
    long before = waits(RUSAGE_SELF) + waits(RUSAGE_CHILDREN);
    batch(call, COUNTED);
    return (double)(waits(RUSAGE_SELF) + waits(RUSAGE_CHILDREN) - before) / COUNTED;
}

static void *many_stats(void *count) {
    char answer[256];
    for (long i = *(const long *)count; i > 0; i--)
        must(syscall(SYS_newfstatat, AT_FDCWD, deep, answer, 0) == 0, "stat in a thread");
    return NULL;
}

/* Microseconds until each of N threads has done one stat: constant where they do not hinder each other. */
static double timed_threads(int threads, double seconds) {
    pthread_t running[MOST_THREADS];
    double one = batch(call_stat_deep, FIRST_BATCH) / FIRST_BATCH;
    long count = (long)(seconds / one / threads) + 1;
    double start = now();
    for (int i = 0; i < threads; i++)
        must(pthread_create(&running[i], NULL, many_stats, &count) == 0, "thread");
    for (int i = 0; i < threads; i++)
        pthread_join(running[i], NULL);
    return (now() - start) / (double)count * 1e6;
}

static void touch(const char *path) {
    int made = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    must(made >= 0 && close(made) == 0, path);
}

static void lay_out(const char *base) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/" BELOW, base);
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL)
            *slash = '\0';
        must(mkdir(path, 0755) == 0 || errno == EEXIST, path);
        if (slash == NULL)
            break;
        *slash = '/';
    }
    snprintf(folder, sizeof(folder), "%s/" BELOW, base);
    snprintf(shallow, sizeof(shallow), "%s/a", base);
    snprintf(renamed, sizeof(renamed), "%s/" BELOW "/renamed", base);
    snprintf(deep, sizeof(deep), "%s/" BELOW "/file", base);
    snprintf(missing, sizeof(missing), "%s/" BELOW "/missing", base);
    snprintf(missing_folder, sizeof(missing_folder), "%s/a/missing/c/d/e/f/file", base);
    snprintf(link_path, sizeof(link_path), "%s/" BELOW "/link", base);
    touch(deep);
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(path, sizeof(path), "%s/" BELOW "/entry-%d", base, i);
        touch(path);
    }
    must(symlink("file", link_path) == 0 || errno == EEXIST, "symlink");
    dirfd_of_folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(dirfd_of_folder >= 0 && chdir(folder) == 0, folder);
}

/* Milliseconds that a program runs, from fork to its end. */
static double timed_program(char **words) {
    double start = now();
    pid_t child = fork();
    int status;
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        if (nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0)
            execvp(words[0], words);
        _exit(127);
    }
    must(child > 0 && waitpid(child, &status, 0) == child && status == 0, words[0]);
    return (now() - start) * 1e3;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "run") == 0) {
        printf("%.3f\n", timed_program(argv + 2));
        return 0;
    }
    if (argc != 3) {
        fprintf(stderr, "usage: calls FOLDER SECONDS | calls run PROGRAM [WORD]...\n");
        return 2;
    }
    double seconds = strtod(argv[2], NULL);
    lay_out(argv[1]);
    printf("{");
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (calls[i].call())
            printf("\"%s\": %.4f, ", calls[i].name, timed(calls[i].call, seconds));
        else
            printf("\"%s\": null, ", calls[i].name);
    for (int threads = 1; threads <= MOST_THREADS; threads *= 2)
        printf("\"stat in %d threads\": %.4f%s", threads, timed_threads(threads, seconds), threads < MOST_THREADS ? ", " : "}\n{");
    for (size_t i = 0, some = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (calls[i].call())
            printf("%s\"%s\": %.3f", some++ > 0 ? ", " : "", calls[i].name, waits_of_one(calls[i].call));
    printf("}\n");
    return 0;
}
