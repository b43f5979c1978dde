/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Processes that are killed, stopped and interrupted at every moment. Each part prints one line that says what must be
 * so however the moments fell; anything else is a failure.
 *
 *     storm killed|borrowers|threads|forks|alarms|stops|filter ROUNDS
 *
 * "again" and "exit" are what the parts run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, EXIT_OF_THREADS = 7 };

static char *self;

static void must(int good, const char *what) {
    if (!good) {
        printf("%s: %s\n", what, strerror(errno));
        fflush(stdout);
        _exit(1);
    }
}

static void wait_a_little(unsigned *seed, long most_nanoseconds) {
    const struct timespec time = {0, rand_r(seed) % most_nanoseconds};

    nanosleep(&time, NULL);
}

/* ---- killed: a child execs itself over and over, and is killed at a random moment of that ------------------------- */

static void again(void) {
    execl(self, self, "again", (char *)NULL);
    _exit(1);
}

static void killed(int rounds) {
    unsigned seed = 1;

    for (int n = 0; n < rounds; n++) {
        int status;
        pid_t child = fork();

        if (child == 0)
            again();
        wait_a_little(&seed, 2000000);
        kill(child, SIGKILL);
        must(waitpid(child, &status, 0) == child, "waitpid");
        must(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "an end of its own");
    }
    puts("killed: all by the signal");
}

/* ---- borrowers: a child that borrows its parent's memory is killed among its path calls; the parent wakes up -------- */

/* Kills the process whose id it reads. */
static pid_t start_killer(int line, unsigned seed) {
    pid_t victim, killer = fork();

    if (killer != 0)
        return killer;
    must(read(line, &victim, sizeof(victim)) == sizeof(victim), "read");
    wait_a_little(&seed, 1000000);
    _exit(kill(victim, SIGKILL) != 0);
}

static pid_t start_borrower(int line) {
    pid_t child = vfork();

    if (child == 0) {
        struct stat found;
        const pid_t own = getpid();
        for (long sent = write(line, &own, sizeof(own)); sent == sizeof(own);)
            (void)syscall(SYS_newfstatat, AT_FDCWD, "/", &found, 0);
        _exit(1);
    }
    return child;
}

static void borrowers(int rounds) {
    for (int n = 0; n < rounds; n++) {
        int status, line[2];

        must(pipe(line) == 0, "pipe");
        pid_t killer = start_killer(line[0], (unsigned)n);
        pid_t child = start_borrower(line[1]);
        must(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "another end");
        must(waitpid(killer, &status, 0) == killer && status == 0, "killer");
        close(line[0]);
        close(line[1]);
    }
    puts("borrowers: each parent went on");
}

/* ---- threads: all threads of a process exec at once; one wins, and all others are gone ---------------------------- */

static pthread_barrier_t together;

static void *exec_exit(void *unused) {
    (void)unused;
    pthread_barrier_wait(&together);
    execl(self, self, "exit", (char *)NULL);
    _exit(1);
}

static void exec_by_all(void) {
    pthread_t thread;

    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (int n = 0; n < THREADS; n++)
        must(pthread_create(&thread, NULL, exec_exit, NULL) == 0, "pthread_create");
    exec_exit(NULL);
}

static void threads(int rounds) {
    for (int n = 0; n < rounds; n++) {
        int status;
        pid_t child = fork();

        if (child == 0)
            exec_by_all();
        must(waitpid(child, &status, 0) == child, "waitpid");
        must(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_OF_THREADS, "another end");
    }
    puts("threads: each process became the program");
}

/* ---- forks: a process ends, or execs, while its threads fork; their children have the same end all the same --------- */

static void *fork_on(void *unused) {
    (void)unused;
    for (;;) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    }
}

static void fork_by_all(unsigned seed) {
    pthread_t thread;

    for (int n = 0; n < 4 * THREADS; n++)
        must(pthread_create(&thread, NULL, fork_on, NULL) == 0, "pthread_create");
    wait_a_little(&seed, 10000000);
    if (seed % 2 == 0)
        execl(self, self, "exit", (char *)NULL);
    _exit(EXIT_OF_THREADS);
}

static void forks(int rounds) {
    int status;

    must(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, "subreaper");
    for (int n = 0; n < rounds; n++) {
        if (fork() == 0)
            fork_by_all((unsigned)n);
        while (wait(&status) > 0) /* the children that were left to this one too */
            must(WIFEXITED(status), "another end");
    }
    puts("forks: each had an end");
}

/* ---- alarms: path calls in a program and in its handler, which interrupts it all the time ------------------------- */

static volatile sig_atomic_t handled, failed_in_handler;

static void on_alarm(int number) {
    struct stat status;
    int error = errno;

    (void)number;
    handled++;
    if (stat("file", &status) != 0 || stat("nothing", &status) != -1 || errno != ENOENT)
        failed_in_handler++;
    errno = error;
}

static void alarms(int rounds) {
    const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};

    must(close(open("file", O_WRONLY | O_CREAT, 0644)) == 0, "file");
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int n = 0; n < rounds || handled < 100; n++) {
        struct stat status;
        char name[32];
        int file = open("file", O_RDONLY);

        must(file >= 0 && close(file) == 0, "open");
        snprintf(name, sizeof(name), "folder-%d", n % 7);
        must(mkdir(name, 0755) == 0, "mkdir");
        must(stat(name, &status) == 0 && S_ISDIR(status.st_mode), "stat");
        must(rename(name, "other") == 0, "rename");
        must(rmdir("other") == 0, "rmdir");
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("alarms: %d failed in the handler\n", (int)failed_in_handler);
}

/* ---- stops: a child that makes path calls is stopped and goes on, and each is told once --------------------------- */

static void stops(int rounds) {
    unsigned seed = 2;
    int status;
    pid_t child = fork();

    if (child == 0)
        for (struct stat found;;)
            (void)stat("/", &found);
    for (int n = 0; n < rounds; n++) {
        wait_a_little(&seed, 200000);
        kill(child, SIGSTOP);
        must(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status), "stop");
        must(waitpid(child, &status, WUNTRACED | WNOHANG) == 0, "a second stop");
        kill(child, SIGCONT);
        must(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status), "continue");
        kill(child, SIGSTOP); /* nobody waits for this one */
        kill(child, SIGCONT);
        while (waitpid(child, &status, WUNTRACED | WCONTINUED | WNOHANG) > 0)
            ;
    }
    kill(child, SIGSTOP);
    must(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status), "last stop");
    kill(child, SIGTERM); /* waits for SIGCONT */
    must(waitpid(child, &status, WNOHANG) == 0, "an end while stopped");
    kill(child, SIGCONT);
    must(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "end");
    puts("stops: each was told");
}

/* ---- filter: a seccomp filter of the program's own stands over the tracer's --------------------------------------- */

static volatile sig_atomic_t trapped_call;

static void on_trap(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    trapped_call = info->si_syscall;
}

static void install(int call, unsigned action) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0, "seccomp");
}

static void filter(int rounds) {
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    struct stat status;
    int ended;

    (void)rounds;
    sigaction(SIGSYS, &action, NULL);
    install(SYS_mkdirat, SECCOMP_RET_ERRNO | EDOM);
    install(SYS_newfstatat, SECCOMP_RET_TRAP);
    install(SYS_execve, SECCOMP_RET_ERRNO | ENOLINK);
    install(SYS_unlinkat, SECCOMP_RET_KILL_PROCESS);
    printf("filter: mkdirat %ld", syscall(SYS_mkdirat, AT_FDCWD, "x", 0755));
    printf(" %s,", strerror(errno));
    (void)syscall(SYS_newfstatat, AT_FDCWD, "file", &status, 0);
    printf(" newfstatat trapped %d,", trapped_call == SYS_newfstatat);
    printf(" execve %d", execl(self, self, "exit", (char *)NULL));
    printf(" %s,", strerror(errno));
    printf(" openat %d,", open("/", O_RDONLY) >= 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        (void)syscall(SYS_unlinkat, AT_FDCWD, "nothing", 0);
    must(waitpid(child, &ended, 0) == child, "waitpid");
    printf(" unlinkat killed %d\n", WIFSIGNALED(ended) && WTERMSIG(ended) == SIGSYS);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(int rounds);
    } parts[] = {{"killed", killed}, {"borrowers", borrowers}, {"threads", threads}, {"forks", forks},
                 {"alarms", alarms}, {"stops", stops},         {"filter", filter}};

    self = argv[0];
    if (argc > 1 && strcmp(argv[1], "again") == 0)
        again();
    if (argc > 1 && strcmp(argv[1], "exit") == 0)
        return EXIT_OF_THREADS;
    for (size_t n = 0; argc == 3 && n < sizeof(parts) / sizeof(parts[0]); n++)
        if (strcmp(argv[1], parts[n].name) == 0) {
            parts[n].run(atoi(argv[2]));
            return 0;
        }
    fprintf(stderr, "usage: storm PART ROUNDS\n");
    return 2;
}
