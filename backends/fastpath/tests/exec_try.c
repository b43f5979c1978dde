/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Tries execve in many ways and says how each ended. Reads cases from standard input, one a line, fields apart by tabs:
 *
 *   NAME  METHOD  OPTIONS  PATH  [ARGUMENT...]
 *
 * METHOD   execve; execveat (PATH relative to the directory of option dir=); descriptor (execveat of an open file,
 *          empty path); memfd (of a copy of PATH); removed (of a copy of PATH that is removed); thread (execve by a
 *          thread that is not the leader); vfork; spawn
 * OPTIONS  "-" or words with commas: uid=N (and gid N, no groups), cwd=DIR, deep=DIR (the deepest one below), dir=DIR,
 *          fd=N (in place of the directory or file), flags=N, cloexec, opath, open=FILE (as 21), writer=FILE (open for
 *          writing meanwhile), stack=BYTES (RLIMIT_STACK), nullargv, badargv, badargs, badenv, comm=NAME, twice (again
 *          after failing)
 * ARGUMENT "@N": N times "a"; "*N": N arguments; "!N": so many arguments of 1000 bytes; else itself
 *
 * Prints "== NAME", what the program prints, and how the attempt ended. With arguments of its own it only says so.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIELDS_MAX 64
#define ARGUMENTS_MAX 300000

struct attempt {
    const char *method, *options, *path;
    char **argv;
    char **envp;
    int directory, flags;
};

static char *environment[] = {"EXEC_TRY=1", "PATH=/usr/bin:/bin", "LC_ALL=C", NULL};

/* The value of an option, "" if it is given without one, NULL if it is not given. */
static const char *option(const struct attempt *attempt, const char *name) {
    static char value[4096];
    size_t length = strlen(name);

    for (const char *word = attempt->options; word; word = strchr(word, ',') ? strchr(word, ',') + 1 : NULL) {
        if (strncmp(word, name, length) != 0 || (word[length] && word[length] != '=' && word[length] != ','))
            continue;
        word += length + (word[length] == '=');
        snprintf(value, sizeof(value), "%.*s", (int)strcspn(word, ","), word);
        return value;
    }
    return NULL;
}

static char *repeated(char c, size_t count) {
    char *text = malloc(count + 1);

    memset(text, c, count);
    text[count] = '\0';
    return text;
}

static char **arguments(char **fields) {
    char **argv = calloc(ARGUMENTS_MAX + 1, sizeof(char *));
    size_t count = 0;

    for (; *fields; fields++) {
        const char *field = *fields;

        if (*field == '@')
            argv[count++] = repeated('a', strtoul(field + 1, NULL, 10));
        else if (*field == '*' || *field == '!')
            for (size_t n = strtoul(field + 1, NULL, 10); n > 0 && count < ARGUMENTS_MAX; n--) {
                argv[count] = *field == '!' ? repeated('b', 1000) : NULL;
                if (!argv[count] && asprintf(&argv[count], "argument%zu", n) < 0)
                    abort();
                count++;
            }
        else
            argv[count++] = *fields;
    }
    return argv;
}

static int copy_of(const char *path, int to) {
    int from = open(path, O_RDONLY);
    char bytes[65536];
    ssize_t got;

    while ((got = read(from, bytes, sizeof(bytes))) > 0)
        if (write(to, bytes, (size_t)got) != got)
            abort();
    close(from);
    return to;
}

/* An open descriptor of the file, as the method wants it; its number does not depend on who runs this. */
static int open_file(const struct attempt *attempt) {
    int cloexec = option(attempt, "cloexec") ? O_CLOEXEC : 0, file, wanted;

    if (strcmp(attempt->method, "memfd") == 0) {
        file = copy_of(attempt->path, memfd_create("try", cloexec ? MFD_CLOEXEC : 0));
    } else if (strcmp(attempt->method, "removed") == 0) {
        file = copy_of(attempt->path, open("/tmp/removed", O_CREAT | O_WRONLY | O_TRUNC, 0755));
        close(file);
        file = open("/tmp/removed", O_RDONLY);
        unlink("/tmp/removed");
    } else {
        file = open(attempt->path, (option(attempt, "opath") ? O_PATH : O_RDONLY));
    }
    wanted = fcntl(file, cloexec ? F_DUPFD_CLOEXEC : F_DUPFD, 20);
    close(file);
    return wanted;
}

static void ask(const struct attempt *attempt) {
    if (strcmp(attempt->method, "execve") == 0 || strcmp(attempt->method, "thread") == 0 ||
        strcmp(attempt->method, "vfork") == 0)
        execve(attempt->path, attempt->argv, attempt->envp);
    else if (strcmp(attempt->method, "execveat") == 0)
        syscall(SYS_execveat, attempt->directory, attempt->path, attempt->argv, attempt->envp, attempt->flags);
    else
        syscall(SYS_execveat, attempt->directory, "", attempt->argv, attempt->envp, AT_EMPTY_PATH | attempt->flags);
}

static void *ask_from_thread(void *attempt) {
    ask(attempt);
    return NULL;
}

/* Into a folder whose path is longer than a path may be: down to the last folder named "ddd..." */
static void enter_deep(const char *top) {
    char name[201];

    if (chdir(top) < 0)
        printf("chdir: %s\n", strerrorname_np(errno));
    for (int length = 200; length > 0; length--) {
        memset(name, 'd', (size_t)length);
        name[length] = '\0';
        while (chdir(name) == 0)
            continue;
    }
}

static void prepare(struct attempt *attempt) {
    const char *value;

    if ((value = option(attempt, "writer")))
        open(value, O_WRONLY);
    if ((value = option(attempt, "stack"))) {
        struct rlimit limit = {strtoul(value, NULL, 10), RLIM_INFINITY};
        setrlimit(RLIMIT_STACK, &limit);
    }
    if ((value = option(attempt, "cwd")) && chdir(value) < 0)
        printf("chdir: %s\n", strerrorname_np(errno));
    if ((value = option(attempt, "deep")))
        enter_deep(value);
    attempt->directory = AT_FDCWD;
    if ((value = option(attempt, "dir"))) {
        int file = open(value, O_PATH | O_DIRECTORY);
        attempt->directory = fcntl(file, option(attempt, "cloexec") ? F_DUPFD_CLOEXEC : F_DUPFD, 20);
        close(file);
    }
    if ((value = option(attempt, "open"))) {
        int file = open(value, O_RDONLY);
        dup2(file, 21);
        close(file);
    }
    if ((value = option(attempt, "fd")))
        attempt->directory = atoi(value);
    else if (strcmp(attempt->method, "descriptor") == 0 || strcmp(attempt->method, "memfd") == 0 ||
             strcmp(attempt->method, "removed") == 0)
        attempt->directory = open_file(attempt);
    if ((value = option(attempt, "flags")))
        attempt->flags = (int)strtol(value, NULL, 0);
    if ((value = option(attempt, "comm")))
        prctl(PR_SET_NAME, value);
    if ((value = option(attempt, "uid"))) {
        uid_t id = (uid_t)atoi(value);
        if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
            printf("uid: %s\n", strerrorname_np(errno));
    }
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (option(attempt, "nullargv"))
        attempt->argv = NULL;
    if (option(attempt, "badargv"))
        attempt->argv = (char **)8;
    if (option(attempt, "badargs"))
        attempt->argv[1] = (char *)8;
    if (option(attempt, "badenv"))
        attempt->envp = (char **)8;
}

static void run(struct attempt *attempt) {
    prepare(attempt);
    fflush(stdout);
    for (int n = option(attempt, "twice") ? 2 : 1; n > 0; n--) {
        if (strcmp(attempt->method, "thread") == 0) {
            pthread_t thread;
            pthread_create(&thread, NULL, ask_from_thread, attempt);
            pthread_join(thread, NULL);
        } else if (strcmp(attempt->method, "vfork") == 0) {
            volatile int error = 0;
            int status;
            pid_t pid = vfork();

            if (pid == 0) {
                ask(attempt);
                error = errno;
                _exit(99);
            }
            waitpid(pid, &status, 0);
            printf("vfork: argv[0] still %.20s\n", attempt->argv ? attempt->argv[0] : "NULL");
            if (!error)
                _exit(WEXITSTATUS(status));
            errno = error;
        } else if (strcmp(attempt->method, "spawn") == 0) {
            pid_t pid;
            int status, error = posix_spawn(&pid, attempt->path, NULL, NULL, attempt->argv, attempt->envp);

            if (error == 0 && waitpid(pid, &status, 0) == pid)
                _exit(WEXITSTATUS(status));
            errno = error;
        } else {
            ask(attempt);
        }
        printf("errno: %s\n", strerrorname_np(errno));
    }
    exit(99);
}

static void try(char *line) {
    char *fields[FIELDS_MAX + 1] = {NULL};
    size_t count = 0;
    struct attempt attempt = {.envp = environment};
    int status;
    pid_t pid;

    for (char *rest = line, *field; count < FIELDS_MAX && (field = strsep(&rest, "\t"));)
        fields[count++] = field;
    if (count < 4)
        return;
    attempt.method = fields[1];
    attempt.options = fields[2];
    attempt.path = fields[3];
    attempt.argv = arguments(fields + 4);
    printf("== %s\n", fields[0]);
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        run(&attempt);
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        printf("signal: %s\n", sigabbrev_np(WTERMSIG(status)));
    else
        printf("exit: %d\n", WEXITSTATUS(status));
    fflush(stdout);
}

int main(int argc, char **argv) {
    static char line[1 << 20];

    if (argc != 1) {
        printf("again, as %s\n", argv[0]);
        return 0;
    }
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        try(line);
    }
    return 0;
}
