/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the in-process library relies on: calls from the page are the kernel's alone, and the epoch page counts what
 * changes where names lead.
 *
 *   fast_path FOLDER HOST_FOLDER     the same empty folder, as the guest and as the host names it
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
#include <sys/wait.h>
#include <unistd.h>

#include "abi.h"

typedef long page_call(long number, long a, long b, long c, long d, long e, long f);

static const volatile uint64_t *epoch = (const volatile uint64_t *)DD_EPOCH_PAGE;
static uint64_t seen;

static void say(const char *what, long result) {
    printf("%s: %s\n", what, result >= 0 ? "ok" : strerrorname_np((int)-result));
}

static void count(const char *what, int result) {
    uint64_t now = *epoch;

    /* Twice: whoever looks a name up before the change, and whoever looks it up meanwhile, shall look again. */
    printf("%s: %d, %s\n", what, result == 0 ? 0 : errno,
           now == seen ? "not counted" : now == seen + 2 ? "counted" : "miscounted");
    seen = now;
}

int main(int argc, char **argv) {
    const uint64_t how[3] = {O_RDONLY, 0, 0};
    char path[4096], host_path[4096];
    page_call *from_page = (page_call *)(uintptr_t)DD_PAGE;
    int status;

    if (argc != 3 || chdir(argv[1]) != 0)
        return 2;
    /* As the library does. */
    mremap((void *)(uintptr_t)DD_PAGE_TEMPLATE, DD_PAGE_SIZE, DD_PAGE_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(uintptr_t)DD_PAGE);
    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(path, sizeof(path), "%s/file", argv[1]);
    snprintf(host_path, sizeof(host_path), "%s/file", argv[2]);
    close(open("file", O_CREAT | O_WRONLY, 0600));

    say("guest path from here", open(path, O_RDONLY) >= 0 ? 0 : -errno);
    say("host path from here", open(host_path, O_RDONLY) >= 0 ? 0 : -errno);
    say("guest path from the page", from_page(SYS_openat, AT_FDCWD, (long)path, O_RDONLY, 0, 0, 0));
    say("host path from the page", from_page(SYS_openat, AT_FDCWD, (long)host_path, O_RDONLY, 0, 0, 0));
    say("openat2 from here", syscall(SYS_openat2, AT_FDCWD, path, how, sizeof(how)) >= 0 ? 0 : -errno);
    say("openat2 from the page", from_page(SYS_openat2, AT_FDCWD, (long)host_path, (long)how, sizeof(how), 0, 0));

    seen = *epoch;
    count("mkdir", mkdir("folder", 0700));
    count("rename of a folder", rename("folder", "moved"));
    count("rename that fails", rename("not there", "moved"));
    count("symlink", symlink("moved", "link"));
    count("unlink of a link", unlink("link"));
    count("rmdir", rmdir("moved"));
    count("unlink of a file", unlink(path));
    if (fork() == 0)
        _exit(symlink("x", "by a child"));
    wait(&status);
    count("symlink by a child", status);
    return 0;
}
