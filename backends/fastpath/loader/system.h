/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The system calls of the loader, by name; results are the kernel's own (negative errno).
 */
#ifndef DD_LOADER_SYSTEM_H
#define DD_LOADER_SYSTEM_H

#include "arch.h"

#include <stddef.h>
#include <stdint.h>

#include <asm/unistd.h>
#include <linux/fcntl.h>

static inline int is_error(long result) {
    return (unsigned long)result > -4096UL; /* MAX_ERRNO, linux/err.h */
}

static inline long system_open(const char *path, int flags) {
    return system_call(__NR_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
}

static inline long system_close(long file) {
    return system_call(__NR_close, file, 0, 0, 0, 0, 0);
}

static inline long system_pread(long file, void *to, size_t size, uint64_t offset) {
    return system_call(__NR_pread64, file, (long)to, (long)size, (long)offset, 0, 0);
}

static inline long system_write(long file, const void *from, size_t size) {
    return system_call(__NR_write, file, (long)from, (long)size, 0, 0, 0);
}

static inline long system_mmap(uintptr_t address, size_t size, int protection, int flags, long file, uint64_t offset) {
    return system_call(__NR_mmap, (long)address, (long)size, protection, flags, file, (long)offset);
}

static inline long system_munmap(uintptr_t address, size_t size) {
    return system_call(__NR_munmap, (long)address, (long)size, 0, 0, 0, 0);
}

static inline long system_mprotect(uintptr_t address, size_t size, int protection) {
    return system_call(__NR_mprotect, (long)address, (long)size, protection, 0, 0, 0);
}

static inline long system_prctl(int option, unsigned long value) {
    return system_call(__NR_prctl, option, (long)value, 0, 0, 0, 0);
}

#endif
