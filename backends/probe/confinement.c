/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The confinement probe: what a backend's probe runs inside a throw-away rootfs, to learn what a guest really gets.
 *
 * Rules of this file
 *  - Static and alone: the throw-away rootfs holds this one file, under its own name and as /usr/bin/env.
 *  - It states what it sees and judges nothing but the path calls; the backend's probe (probing.py) compares with the plan.
 *  - The answer of `look` is one JSON object on one line. Texts are hexadecimal, since they are bytes: no quoting, no encoding.
 *  - Whatever waits has an alarm, so that a probe never outlives a broken tracer for long.
 *
 * Modes: look GUEST BOUND HOST [WORD...] | seen PATH... | exit N | signal N | orphan N M | linger N | write PATH | term | ptrace
 *        forward START_MS END_MS PROGRAM ARG...      (on the host: start it, send TERM when its `term` is ready)
 * Called as `env`: -i NAME=VALUE... PROGRAM ARG..., as env(1).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

enum { OWN_FAILURE = 125, CANNOT_RUN = 126, NOT_FOUND = 127, LONGEST_WAIT_S = 60 };

static const char *word(bool truth)
{
    return truth ? "true" : "false";
}

static void print_hex(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++)
        printf("%02x", (unsigned char) *text);
    putchar('"');
}

static void print_texts(const char *name, char *const *texts)
{
    printf(", \"%s\": [", name);
    for (size_t i = 0; texts[i] != NULL; i++) {
        fputs(i == 0 ? "" : ", ", stdout);
        print_hex(texts[i]);
    }
    printf("]");
}

static void print_content(const char *path)
{
    char content[256] = "";
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        size_t length = fread(content, 1, sizeof content - 1, file);
        content[length] = '\0';
        fclose(file);
    }
    printf(", \"content\": ");
    print_hex(content);
}

/* A place as the host describes it: DEVICE:INODE:NAME. */
static struct place guest_place(const char *description)
{
    char *end;
    struct place place = {.of_the_guest = true};
    place.device = strtoull(description, &end, 10);
    place.inode = strtoull(end + (*end == ':'), &end, 10);
    place.name = end + (*end == ':');
    return place;
}

static int look(int count, char **words)
{
    if (count < 5)
        return OWN_FAILURE;
    struct place places[] = {guest_place(words[2]), guest_place(words[3]), {.name = words[4]}};
    struct utsname kernel;
    char cwd[PATH_MAX] = "";
    if (uname(&kernel) != 0 || getcwd(cwd, sizeof cwd) == NULL)
        cwd[0] = '\0';
    printf("{");
    print_calls(places, sizeof places / sizeof places[0]);
    print_content(places[0].name);
    print_texts("arguments", words);
    print_texts("environment", environ);
    char *const here[] = {cwd, NULL};
    print_texts("cwd", here);
    char *const fields[] = {kernel.sysname, kernel.nodename, kernel.release, kernel.version, kernel.machine, kernel.domainname, NULL};
    print_texts("uname", fields);
    printf(", \"ids\": [%u, %u, %u, %u]}\n", getuid(), geteuid(), getgid(), getegid());
    return 0;
}

static int seen(int count, char **words)
{
    printf("{\"seen\": [");
    for (int i = 2; i < count; i++) {
        struct stat found = {0};
        int error = stat(words[i], &found) == 0 ? 0 : errno;
        printf("%s[%d, %llu, %llu]", i == 2 ? "" : ", ", error, (unsigned long long) found.st_dev, (unsigned long long) found.st_ino);
    }
    printf("]}\n");
    return 0;
}

static int number(int count, char **words, int index)
{
    return index < count ? atoi(words[index]) : OWN_FAILURE;
}

static int end_with(int count, char **words)
{
    return number(count, words, 2);
}

static int end_by_signal(int count, char **words)
{
    const struct rlimit no_core = {0, 0};
    int which = number(count, words, 2);
    setrlimit(RLIMIT_CORE, &no_core);
    signal(which, SIG_DFL);
    kill(getpid(), which);
    return OWN_FAILURE;
}

static void leave_descriptors(void)
{
    for (int descriptor = 0; descriptor < 3; descriptor++)
        close(descriptor);
}

/* End with status N; a child that certainly ends later has status M. */
static int orphan(int count, char **words)
{
    const struct timespec until_it_was_read = {0, 50 * 1000 * 1000};
    pid_t main_process = getpid();
    pid_t child = fork();
    if (child == 0) {
        alarm(LONGEST_WAIT_S);
        leave_descriptors();
        while (getppid() == main_process)
            sched_yield();
        nanosleep(&until_it_was_read, NULL);
        _exit(number(count, words, 3));
    }
    return child > 0 ? number(count, words, 2) : OWN_FAILURE;
}

/* End with status N and leave a child behind that does not end by itself. */
static int linger(int count, char **words)
{
    pid_t child = fork();
    if (child == 0) {
        alarm(LONGEST_WAIT_S);
        leave_descriptors();
        setsid();
        for (;;)
            pause();
    }
    return child > 0 ? number(count, words, 2) : OWN_FAILURE;
}

static int write_to(int count, char **words)
{
    int descriptor = count > 2 ? open(words[2], O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (descriptor < 0)
        return errno;
    close(descriptor);
    return 0;
}

static int wait_for_term(int count, char **words)
{
    (void) count, (void) words;
    const struct timespec longest = {LONGEST_WAIT_S, 0};
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    printf("ready %d\n", getpid());
    fflush(stdout);
    if (sigtimedwait(&term, NULL, &longest) != SIGTERM)
        return OWN_FAILURE;
    printf("told\n");
    return 0;
}

/* Read up to a line's end; false at the end of the stream or of the time. */
static bool read_line(int descriptor, char *line, size_t size, int limit_ms)
{
    struct timespec now, start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (size_t length = 0; length + 1 < size;) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        long left = limit_ms - (now.tv_sec - start.tv_sec) * 1000 - (now.tv_nsec - start.tv_nsec) / 1000000;
        struct pollfd readable = {.fd = descriptor, .events = POLLIN};
        if (left <= 0 || poll(&readable, 1, (int) left) <= 0 || read(descriptor, line + length, 1) != 1)
            return false;
        line[length + 1] = '\0';
        if (line[length++] == '\n')
            return true;
    }
    return false;
}

/* Whether a process of the host has a tracer. */
static bool is_traced(int process)
{
    char path[64], line[256];
    int tracer = 0;
    snprintf(path, sizeof path, "/proc/%d/status", process);
    FILE *status = fopen(path, "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "TracerPid: %d", &tracer) == 1)
            break;
    if (status != NULL)
        fclose(status);
    return tracer != 0;
}

static int forward(int count, char **words)
{
    int ends[2], process_of_main = 0;
    char line[128] = "";
    if (count < 5 || pipe2(ends, O_CLOEXEC) != 0)
        return OWN_FAILURE;
    pid_t child = fork();
    if (child == 0) {
        /* What outlives this program must not hold the descriptors that its caller reads to their end. */
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDERR_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        execvp(words[4], words + 4);
        _exit(errno == ENOENT ? NOT_FOUND : CANNOT_RUN);
    }
    close(ends[1]);
    bool ready = child > 0 && read_line(ends[0], line, sizeof line, atoi(words[2])) && sscanf(line, "ready %d", &process_of_main) == 1;
    bool told = false, traced = false;
    if (ready) {
        traced = is_traced(process_of_main);
        kill(child, SIGTERM);
        told = read_line(ends[0], line, sizeof line, atoi(words[3])) && strcmp(line, "told\n") == 0;
    }
    if (child > 0)
        kill(child, SIGKILL);
    printf("{\"ready\": %s, \"told\": %s, \"traced\": %s, \"same_process\": %s}\n", word(ready), word(told), word(traced),
           word(process_of_main == child));
    return 0;
}

/* Whether a tracer could work here: a child asks to be traced, another is seized. */
static int try_ptrace(int count, char **words)
{
    (void) count, (void) words;
    int status, traceme = EIO, seize = EIO;
    pid_t child = fork();
    if (child == 0)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? 0 : errno & 0x7f);
    if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status))
        traceme = WEXITSTATUS(status);
    child = fork();
    if (child == 0) {
        alarm(LONGEST_WAIT_S);
        for (;;)
            pause();
    }
    if (child > 0) {
        seize = ptrace(PTRACE_SEIZE, child, NULL, NULL) == 0 ? 0 : errno;
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    printf("{\"traceme\": %d, \"seize\": %d}\n", traceme, seize);
    return 0;
}

static const struct mode {
    const char *name;
    int (*run)(int count, char **words);
} modes[] = {
    {"look", look},     {"seen", seen},       {"exit", end_with},      {"signal", end_by_signal}, {"orphan", orphan},
    {"linger", linger}, {"write", write_to},  {"term", wait_for_term}, {"ptrace", try_ptrace},    {"forward", forward},
};

static int as_env(char **words)
{
    char **entry = words + 1;
    if (*entry == NULL || strcmp(*entry, "-i") != 0 || clearenv() != 0)
        return OWN_FAILURE;
    for (entry++; *entry != NULL && strchr(*entry, '=') != NULL; entry++)
        if (putenv(*entry) != 0)
            return OWN_FAILURE;
    if (*entry == NULL)
        return OWN_FAILURE;
    char *nothing[] = {NULL};
    execve(*entry, entry, environ != NULL ? environ : nothing);
    return errno == ENOENT ? NOT_FOUND : CANNOT_RUN;
}

int main(int count, char **words)
{
    const char *slash = count > 0 ? strrchr(words[0], '/') : NULL;
    if (count > 0 && strcmp(slash != NULL ? slash + 1 : words[0], "env") == 0)
        return as_env(words);
    for (size_t i = 0; count > 1 && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(words[1], modes[i].name) == 0)
            return modes[i].run(count, words);
    fprintf(stderr, "%s: unknown mode\n", count > 0 ? words[0] : "confinement-probe");
    return OWN_FAILURE;
}
