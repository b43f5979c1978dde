/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How the loader ends when it cannot start the program. Both ways end for sure: a guest may have SIGSEGV ignored or
 * blocked.
 */
#include "failure.h"

#include "system.h"

#include <asm/signal.h>

static size_t length_of(const char *text) {
    size_t length = 0;

    while (text[length])
        length++;
    return length;
}

static void say(const char *text) {
    (void)system_write(2, text, length_of(text));
}

_Noreturn void fail(const char *reason, const char *what) {
    say("droiddeck-loader: ");
    say(what);
    say(*what ? ": " : "");
    say(reason);
    say("\n");
    for (;;)
        (void)system_call(__NR_exit_group, LOADER_EXIT, 0, 0, 0, 0, 0);
}

/* struct kernel_sigaction of the system call (not libc's): all zero is SIG_DFL, on every architecture. */
struct default_action {
    unsigned long words[4];
};

_Noreturn void fail_as_the_kernel(void) {
    const struct default_action action = {{0}};
    const uint64_t segv = 1ULL << (SIGSEGV - 1);
    long self = system_call(__NR_getpid, 0, 0, 0, 0, 0, 0);

    (void)system_call(__NR_rt_sigaction, SIGSEGV, (long)&action, 0, sizeof(segv), 0, 0);
    (void)system_call(__NR_rt_sigprocmask, SIG_UNBLOCK, (long)&segv, 0, sizeof(segv), 0, 0);
    (void)system_call(__NR_kill, self, SIGSEGV, 0, 0, 0, 0);
    fail("the image cannot be mapped", "");
}
