/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a system call leaves in the registers: all but the result's and those that the instruction itself takes (rcx,
 * r11) must be as before, whether the tracer answers, replaces or leaves the call, and whether a signal's handler makes
 * calls meanwhile.
 *
 *   registers FOLDER     FOLDER is writable and has nothing in it. Prints a line per call, and "busy: N handled".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define RENAMEAT2_NOREPLACE 1

enum { RDI, RSI, RDX, R10, R8, R9, RBX, RBP, R12, R13, R14, R15, RSP, KEPT };

static const char *const names[KEPT] = {"rdi", "rsi", "rdx", "r10", "r8",  "r9", "rbx",
                                        "rbp", "r12", "r13", "r14", "r15", "rsp"};

struct frame {
    uint64_t registers[KEPT]; /* in and out; rsp only out */
    uint64_t number, result, stack;
};

/* Loads all from the frame, makes the call, stores all. The frame's address is on the stack meanwhile. */
__asm__(".text\n.type make_call, @function\nmake_call:\n"
        "push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\npush %rdi\n"
        "mov %rsp, 120(%rdi)\n"
        "mov %rdi, %rax\n"
        "mov 8(%rax), %rsi\nmov 16(%rax), %rdx\nmov 24(%rax), %r10\nmov 32(%rax), %r8\nmov 40(%rax), %r9\n"
        "mov 48(%rax), %rbx\nmov 56(%rax), %rbp\nmov 64(%rax), %r12\nmov 72(%rax), %r13\nmov 80(%rax), %r14\n"
        "mov 88(%rax), %r15\nmov 0(%rax), %rdi\nmov 104(%rax), %rax\n"
        "syscall\n"
        "mov (%rsp), %rcx\nmov %rax, 112(%rcx)\nmov %rsp, 96(%rcx)\n"
        "mov %rdi, 0(%rcx)\nmov %rsi, 8(%rcx)\nmov %rdx, 16(%rcx)\nmov %r10, 24(%rcx)\nmov %r8, 32(%rcx)\n"
        "mov %r9, 40(%rcx)\nmov %rbx, 48(%rcx)\nmov %rbp, 56(%rcx)\nmov %r12, 64(%rcx)\nmov %r13, 72(%rcx)\n"
        "mov %r14, 80(%rcx)\nmov %r15, 88(%rcx)\n"
        "pop %rdi\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n"
        ".size make_call, . - make_call\n");
void make_call(struct frame *frame);

static int wrong;

static long check(const char *what, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e) {
    struct frame frame = {.registers = {a, b, c, d, e, 0x0909090909090909}, .number = (uint64_t)number};

    for (int n = RBX; n < RSP; n++)
        frame.registers[n] = 0x1111111111111111 * (uint64_t)(n - 4);
    struct frame before = frame;
    make_call(&frame);
    before.registers[RSP] = frame.stack;
    for (int n = 0; n < KEPT; n++)
        if (frame.registers[n] != before.registers[n]) {
            printf("%s: %s is changed\n", what, names[n]);
            wrong++;
        }
    return (long)frame.result;
}

static uint64_t at(const void *pointer) {
    return (uint64_t)(uintptr_t)pointer;
}

static void say(const char *what, long result) {
    printf("%s: %s\n", what, result < 0 ? strerror((int)-result) : "ok");
}

static volatile sig_atomic_t handled;

static void make_calls(int number) {
    struct stat status;
    int error = errno;

    (void)number;
    stat("/", &status);
    close(open("/etc/hostname", O_RDONLY));
    handled++;
    errno = error;
}

int main(int argc, char **argv) {
    char buffer[4096], link[] = "/proc/self/exe";
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    const uint64_t cwd = (uint64_t)AT_FDCWD;
    struct stat status;

    if (argc != 2 || chdir(argv[1]) != 0)
        return 2;
    snprintf(buffer, sizeof(buffer), "%s/x", argv[1]);
    char *path = strdup(buffer);
    snprintf(buffer, sizeof(buffer), "%s/y", argv[1]);
    char *other = strdup(buffer);
    int socket_there = socket(AF_UNIX, SOCK_STREAM, 0);

    say("openat", check("openat", SYS_openat, cwd, at(path), O_CREAT | O_RDWR, 0644, 5));
    say("openat in place", check("openat in place", SYS_openat, cwd, at("x"), O_RDONLY, 0, 5));
    say("openat missing", check("openat missing", SYS_openat, cwd, at("/not/there"), O_RDONLY, 0, 5));
    say("stat", check("stat", SYS_stat, at(path), at(&status), 3, 4, 5));
    say("stat bad", check("stat bad", SYS_stat, at(path), 1, 3, 4, 5));
    say("access", check("access", SYS_access, at(path), R_OK, 3, 4, 5));
    say("readlink", check("readlink", SYS_readlink, at(link), at(buffer), sizeof(buffer), 4, 5));
    say("getcwd", check("getcwd", SYS_getcwd, at(buffer), sizeof(buffer), 3, 4, 5));
    say("rename", check("rename", SYS_rename, at(path), at(other), 3, 4, 5));
    say("renameat2", check("renameat2", SYS_renameat2, cwd, at(other), cwd, at(path), RENAMEAT2_NOREPLACE));
    say("link", check("link", SYS_link, at(path), at(other), 3, 4, 5));
    say("unlink", check("unlink", SYS_unlink, at(other), 2, 3, 4, 5));
    say("chdir", check("chdir", SYS_chdir, at("/"), 2, 3, 4, 5));
    say("chdir back", check("chdir back", SYS_chdir, at(argv[1]), 2, 3, 4, 5));
    say("execve", check("execve", SYS_execve, at("/not/there"), 0, 0, 4, 5));
    say("execveat", check("execveat", SYS_execveat, cwd, at(path), 0, 0, 0));
    say("bind", check("bind", SYS_bind, (uint64_t)socket_there, at(&address), sizeof(address), 4, 5));
    say("connect", check("connect", SYS_connect, (uint64_t)socket_there, at(&address), sizeof(address), 4, 5));
    say("openat2", check("openat2", SYS_openat2, cwd, at(path), at(buffer), 0, 5) == -ENOSYS ? 0 : 0);

    struct sigaction action = {.sa_handler = make_calls, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 1000}, {0, 1000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    while (handled < 200) {
        if (check("busy openat", SYS_openat, cwd, at(path), O_PATH | O_CLOEXEC, 0, 5) < 0)
            wrong++;
        close_range(8, ~0U, 0);
        if (check("busy stat", SYS_stat, at(path), at(&status), 3, 4, 5) != 0)
            wrong++;
    }
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
