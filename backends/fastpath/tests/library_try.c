/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the in-process library must hold, one word each; dynamically linked, since the library is preloaded.
 *
 *   library_try swap | filter | descriptors | stack | vfork | handler | repeat
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
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
#include <ucontext.h>
#include <unistd.h>

static void must(int good, const char *what) {
    if (!good) {
        printf("%s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static void put(const char *path, const char *text) {
    FILE *file = fopen(path, "w");

    must(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, path);
}

static void show(const char *what, const char *path) {
    char text[64] = "";
    struct stat status;
    int descriptor = open(path, O_RDONLY);

    if (descriptor < 0 || read(descriptor, text, sizeof(text) - 1) < 0)
        snprintf(text, sizeof(text), "%s", strerror(errno));
    else
        text[strcspn(text, "\n")] = '\0';
    printf("%s: %s, size %d\n", what, text, stat(path, &status) == 0 ? (int)status.st_size : -1);
    if (descriptor >= 0)
        close(descriptor);
}

static void in_child(void (*work)(void)) {
    int status;
    pid_t child = fork();

    if (child == 0) {
        work();
        _exit(0);
    }
    must(waitpid(child, &status, 0) == child && status == 0, "child");
}

static void swap_by_library(void) {
    must(rename("/spot/d", "/spot/d2") == 0 && symlink("/etc", "/spot/d") == 0, "swap");
}

static void swap_back_by_calls(void) {
    /* From here, not from libc: the tracer answers. */
    long done;
    const char *from = "/spot/d", *to = "/spot/d2";

    __asm__ volatile("syscall" : "=a"(done) : "a"(SYS_unlink), "D"(from) : "rcx", "r11", "memory");
    must(done == 0, "unlink");
    __asm__ volatile("syscall" : "=a"(done) : "a"(SYS_rename), "D"(to), "S"(from) : "rcx", "r11", "memory");
    must(done == 0, "rename");
}

/* A directory that another process replaces by a link is seen at once: with a host path that link leads to the host. */
static void swap(void) {
    must(mkdir("/spot/d", 0755) == 0, "mkdir");
    put("/spot/d/hostname", "in the folder\n");
    for (int n = 0; n < 3; n++)
        show("before", "/spot/d/hostname");
    in_child(swap_by_library);
    show("swapped", "/spot/d/hostname");
    put("/spot/d/made", "x");
    printf("made in /etc: %d\n", access("/etc/made", F_OK) == 0);
    show("swapped", "/spot/d/hostname");
    in_child(swap_back_by_calls);
    show("back", "/spot/d/hostname");
    must(rename("/spot/d", "/spot/d3") == 0 && mkdir("/spot/d", 0755) == 0, "own rename");
    show("own rename", "/spot/d/hostname");
}

/* A program whose filter kills for whatever the library would do by itself. */
static void filter(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_readlinkat, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_faccessat, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
    char text[8];
    struct stat status;

    must(open("/etc/hostname", O_RDONLY) >= 0, "open");
    must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT, "asked");
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "on");
    printf("open %d, access %d, readlink %d, stat %d\n", open("/etc/hostname", O_RDONLY) >= 0, access("/etc", R_OK),
           (int)readlink("/etc/hostname", text, sizeof(text)), stat("/etc/hostname", &status));
    fflush(stdout);
    execl("/proc/self/exe", "library_try", "after-filter", NULL);
}

static void after_filter(void) {
    printf("after execve: open %d, mkdir %d\n", open("/etc/hostname", O_RDONLY) >= 0, mkdir("/spot/f", 0755));
}

static int count_descriptors(void) {
    int count = 0;

    for (int n = 0; n < 256; n++)
        count += fcntl(n, F_GETFD) >= 0;
    return count;
}

static void all_calls(void) {
    char text[PATH_MAX];
    struct stat status;
    int descriptor = open("/spot/file", O_RDWR | O_CREAT, 0600);

    must(descriptor >= 0 && close(descriptor) == 0, "open");
    must(stat("/spot/file", &status) == 0 && lstat("/spot/none", &status) == -1, "stat");
    must(access("/spot/file", R_OK) == 0 && readlink("/spot/file", text, 9) == -1, "access");
    must(chmod("/spot/file", 0644) == 0 && rename("/spot/file", "/spot/other") == 0, "rename");
    must(symlink("other", "/spot/link") == 0 && readlink("/spot/link", text, 9) == 5, "symlink");
    must(stat("/spot/link", &status) == 0 && S_ISREG(status.st_mode), "stat of a link");
    must(unlink("/spot/link") == 0 && unlink("/spot/other") == 0, "unlink");
    must(mkdir("/spot/e", 0755) == 0 && rmdir("/spot/e") == 0, "mkdir");
    must(getcwd(text, sizeof(text)) != NULL && access("/spot/no/such", F_OK) == -1 && errno == ENOENT, "getcwd");
}

static void descriptors(void) {
    int before;

    closefrom(3);
    before = count_descriptors();
    for (int n = 0; n < 50; n++) {
        all_calls();
        if (n == 25)
            closefrom(3);
    }
    printf("descriptors: %d more\n", count_descriptors() - before);
}

/* ---- little stack ------------------------------------------------------------------------------------------------ */

enum { STACK = 64 * 1024 };

static _Alignas(16) unsigned char stack[STACK];
static ucontext_t main_context, call_context;
static const char *now_in;

static void one_call(void) {
    static char text[PATH_MAX];
    static struct stat status;
    int descriptor;

    switch (now_in[0]) {
    case 's':
        stat("/usr/../etc/hostname", &status);
        break;
    case 'o':
        descriptor = open("/spot/newfile", O_CREAT | O_WRONLY, 0600);
        close(descriptor);
        break;
    case 'a':
        access("/usr/bin/env", X_OK);
        break;
    case 'g':
        (void)!getcwd(text, sizeof(text));
        break;
    case 'r':
        rename("/spot/newfile", "/spot/newer");
        break;
    default:
        chmod("/spot/newer", 0640);
        break;
    }
}

static size_t touched(void) {
    size_t clean = 0;

    while (clean < sizeof(stack) && stack[clean] == 0xa5)
        clean++;
    return sizeof(stack) - clean;
}

static void call_on_stack(void) {
    memset(stack, 0xa5, sizeof(stack));
    getcontext(&call_context);
    call_context.uc_stack.ss_sp = stack;
    call_context.uc_stack.ss_size = sizeof(stack);
    call_context.uc_link = &main_context;
    makecontext(&call_context, one_call, 0);
    swapcontext(&main_context, &call_context);
}

static void stack_of_calls(void) {
    static const char *const names[] = {"stat", "open", "access", "getcwd", "rename", "chmod"};

    for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
        now_in = names[n];
        call_on_stack(); /* the first binds names: that is ld.so's stack */
        call_on_stack();
        size_t used = touched();
        if (used <= 4096)
            printf("%s: less than 4 KiB\n", names[n]);
        else
            printf("%s: %zu bytes\n", names[n], used);
    }
}

/* ---- who else calls ---------------------------------------------------------------------------------------------- */

static void by_vfork(void) {
    int status;
    pid_t child = vfork();

    if (child == 0) {
        struct stat found;
        int descriptor = open("/etc/hostname", O_RDONLY);
        _exit(descriptor >= 0 && stat("/etc", &found) == 0 ? 7 : 8);
    }
    must(waitpid(child, &status, 0) == child, "vfork");
    printf("vfork: %d\n", WEXITSTATUS(status));
}

static volatile sig_atomic_t handled;

static void on_alarm(int number) {
    int saved = errno, descriptor = open("/etc/hostname", O_RDONLY);
    struct stat status;

    (void)number;
    if (descriptor >= 0 && stat("/spot", &status) == 0 && access("/spot/none", F_OK) == -1)
        handled++;
    close(descriptor);
    errno = saved;
}

static void in_handler(void) {
    struct itimerval every = {{0, 200}, {0, 200}};
    struct sigaction action = {.sa_handler = on_alarm};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (int n = 0; n < 200 || handled < 50; n++)
        all_calls();
    printf("handled\n");
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tries[] = {
        {"swap", swap},           {"filter", filter},   {"after-filter", after_filter}, {"descriptors", descriptors},
        {"stack", stack_of_calls}, {"vfork", by_vfork}, {"handler", in_handler},        {"calls", all_calls},
    };

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t n = 0; argc == 2 && n < sizeof(tries) / sizeof(tries[0]); n++)
        if (strcmp(argv[1], tries[n].name) == 0) {
            tries[n].run();
            return 0;
        }
    return 2;
}
