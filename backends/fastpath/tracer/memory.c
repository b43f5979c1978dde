/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The memory of a tracee, by process_vm_readv(2) and process_vm_writev(2): one system call, any size, and what the
 * tracee may not write stays unwritten.
 */
#define _GNU_SOURCE
#include "memory.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

enum {
    PAGE = 4096,       /* the smallest of all page sizes: a read within one page is all or nothing */
    FIRST_BITE = 256,  /* most paths are shorter: one small copy */
};

/* In the remote vector an element that is not mapped whole is not read at all (process_vm_readv(2), NOTES), so a read
 * is cut where a page ends. */
static ssize_t read_in_two(pid_t tid, uint64_t address, void *buffer, size_t size) {
    size_t to_page_end = PAGE - (size_t)(address % PAGE);
    size_t first = size < to_page_end ? size : to_page_end;
    struct iovec local = {buffer, size};
    struct iovec remote[2] = {
        {(void *)(uintptr_t)address, first},
        {(void *)(uintptr_t)(address + first), size - first},
    };
    return process_vm_readv(tid, &local, 1, remote, size > first ? 2 : 1, 0);
}

int memory_read(pid_t tid, uint64_t address, void *buffer, size_t size) {
    struct iovec local = {buffer, size};
    struct iovec remote = {(void *)(uintptr_t)address, size};
    return process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

/* A buffer may lie where the stack has not grown to yet. The kernel's own copy_to_user lets it grow, and so does ptrace
 * (6.5 and later: __access_remote_vm, mm/memory.c), but not process_vm_writev. */
static bool grow_stack(pid_t tid, uint64_t address) {
    errno = 0;
    ptrace(PTRACE_PEEKDATA, tid, (void *)(uintptr_t)address, NULL);
    return errno == 0;
}

int memory_write(pid_t tid, uint64_t address, const void *bytes, size_t size) {
    struct iovec local = {(void *)(uintptr_t)bytes, size};
    struct iovec remote = {(void *)(uintptr_t)address, size};

    if (process_vm_writev(tid, &local, 1, &remote, 1, 0) == (ssize_t)size)
        return 0;
    return grow_stack(tid, address) && process_vm_writev(tid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

int memory_read_some(pid_t tid, uint64_t address, void *buffer, size_t size) {
    size_t got = 0;

    while (got < size) {
        uint64_t at = address + got;
        size_t bite = PAGE + (PAGE - (size_t)(at % PAGE)); /* to the end of the next page */
        if (bite > size - got)
            bite = size - got;
        ssize_t length = read_in_two(tid, at, (char *)buffer + got, bite);
        if (length <= 0)
            break;
        got += (size_t)length;
        if ((size_t)length < bite)
            break;
    }
    return got == 0 && size > 0 ? -EFAULT : (int)got;
}

int memory_read_string(pid_t tid, uint64_t address, char *buffer, size_t size) {
    size_t got = 0;

    while (got < size) {
        size_t bite = got == 0 ? FIRST_BITE : PAGE;
        if (bite > size - got)
            bite = size - got;
        ssize_t length = read_in_two(tid, address + got, buffer + got, bite);
        if (length <= 0)
            return -EFAULT;
        const char *end = memchr(buffer + got, '\0', (size_t)length);
        if (end != NULL)
            return (int)(end - buffer);
        got += (size_t)length;
    }
    return -ENAMETOOLONG;
}
