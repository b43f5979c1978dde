/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Calls that the tracer refuses or lets pass by their arguments: prints each one's errno, "ok" or "signal N".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *what, long result) {
    printf("%s: %s\n", what, result >= 0 ? "ok" : strerrorname_np(errno));
    fflush(stdout);
}

static long int80(long number, long a, long b, long c) {
    long result;

    __asm__ volatile("push %%rbx\n\tmov %[a], %%rbx\n\tint $0x80\n\tpop %%rbx"
                     : "=a"(result)
                     : "a"(number), [a] "r"(a), "c"(b), "d"(c)
                     : "memory", "r8", "r9", "r10", "r11");
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

/* In a child, so that what succeeds changes nothing here. */
static void in_child(const char *what, long number, long a, long b, long c) {
    int status;

    fflush(stdout);
    if (fork() == 0) {
        say(what, syscall(number, a, b, c, 0L, 0L, 0L));
        _exit(0);
    }
    wait(&status);
    if (WIFSIGNALED(status))
        printf("%s: signal %d\n", what, WTERMSIG(status));
}

int main(void) {
    struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    struct sock_fprog passes = {1, &allow};
    char text[4096];

    say("ptrace traceme", ptrace(PTRACE_TRACEME, 0, 0, 0));
    say("ptrace attach", ptrace(PTRACE_ATTACH, getppid(), 0, 0));
    say("ptrace seize", ptrace(PTRACE_SEIZE, getppid(), 0, 0));
    in_child("openat2", 437, AT_FDCWD, (long)"/etc/hostname", (long)text);
    in_child("open_tree", 428, AT_FDCWD, (long)"/", 1);
    in_child("io_uring_setup", 425, 1, (long)text, 0);
    in_child("open_by_handle_at", 304, AT_FDCWD, (long)text, 0);
    in_child("mount", 165, (long)"/", (long)"/", 0);
    in_child("unknown number", 511, 0, 0, 0);
    in_child("unknown number above", 100000, 0, 0, 0);
    in_child("x32 getpid", 0x40000000 + SYS_getpid, 0, 0, 0);
    in_child("x32 open", 0x40000000 + 2, (long)"/etc/hostname", 0, 0);
    in_child("unshare user", SYS_unshare, CLONE_NEWUSER, 0, 0);
    in_child("unshare mounts", SYS_unshare, CLONE_NEWNS, 0, 0);
    in_child("unshare fs", SYS_unshare, CLONE_FS, 0, 0);
    in_child("clone user", SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0);
    in_child("clone mounts", SYS_clone, CLONE_NEWNS | SIGCHLD, 0, 0);
    in_child("clone untraced", SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0);
    in_child("setns", SYS_setns, 0, 0, 0);
    in_child("host name", SYS_sethostname, (long)text, -1, 0); /* a length that the kernel would not take */
    in_child("domain name", SYS_setdomainname, (long)text, -1, 0);
    in_child("seccomp listener", SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, (long)&passes);
    say("not dumpable", prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
    printf("dumpable all the same: %d\n", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
    say("dumpable", prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
    say("own name", prctl(PR_SET_NAME, "name", 0, 0, 0));
    say("int 0x80 open", int80(5, (long)"/etc/hostname", 0, 0));
    say("int 0x80 getpid", int80(20, 0, 0, 0));
    say("int 0x80 modify_ldt", int80(123, 0, (long)0, 0));
    printf("int 0x80 set_thread_area: %s\n", int80(243, 0, 0, 0) < 0 && errno == ENOSYS ? "ENOSYS" : "passed");
    return 0;
}
