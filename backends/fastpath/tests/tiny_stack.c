/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Calls on a stack that has nothing below its pointer but a guard page, and on one whose bytes below the pointer are
 * somebody else's: nothing may be written there.
 *
 *   tiny_stack FOLDER     FOLDER is writable and empty, an absolute path
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 65536 };

static long call_on(void *stack, long number, const void *a, const void *b, long c) {
    long result;

    __asm__ volatile("mov %%rsp, %%r12\n\tmov %[stack], %%rsp\n\tsyscall\n\tmov %%r12, %%rsp"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), [stack] "r"(stack)
                     : "rcx", "r11", "r12", "memory");
    return result;
}

static void try_on(const char *where, char *stack, const char *path, const char *other) {
    struct stat status;
    char buffer[256];
    char *null = NULL;

    long descriptor = call_on(stack, SYS_open, path, (void *)(uintptr_t)(O_CREAT | O_RDWR), 0600);
    printf("%s open: %s\n", where, descriptor >= 0 ? "ok" : strerror((int)-descriptor));
    if (descriptor >= 0)
        close((int)descriptor);
    printf("%s stat: %ld\n", where, call_on(stack, SYS_stat, path, &status, 0));
    printf("%s rename: %ld\n", where, call_on(stack, SYS_rename, path, other, 0));
    printf("%s getcwd: %ld\n", where, call_on(stack, SYS_getcwd, buffer, (void *)sizeof(buffer), 0));
    printf("%s execve: %ld\n", where, call_on(stack, SYS_execve, "/not/there", &null, 0));
    printf("%s script: %ld\n", where, call_on(stack, SYS_execve, other, &null, 0));
    printf("%s unlink: %ld\n", where, call_on(stack, SYS_unlink, other, NULL, 0));
}

int main(int argc, char **argv) {
    char path[4096], other[4096];

    if (argc != 2)
        return 2;
    snprintf(path, sizeof(path), "%s/a", argv[1]);
    snprintf(other, sizeof(other), "%s/b", argv[1]);
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages, PAGE, PROT_NONE);
    try_on("guard page", pages + PAGE + 8, path, other);

    mprotect(pages, PAGE, PROT_READ | PROT_WRITE);
    memset(pages, 0x5a, PAGE);
    try_on("others' bytes", pages + PAGE, path, other);
    int changed = 0;
    for (size_t n = 0; n < PAGE; n++)
        changed += pages[n] != 0x5a;
    printf("bytes changed: %d\n", changed);
    return changed != 0;
}
