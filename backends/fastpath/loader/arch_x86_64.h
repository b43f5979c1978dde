/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The loader on x86-64: the system call instruction and the addresses that the kernel's own ELF loader uses there.
 */
#ifndef DD_LOADER_ARCH_X86_64_H
#define DD_LOADER_ARCH_X86_64_H

#include <elf.h>
#include <stdint.h>

#define MACHINE EM_X86_64

/* Where the kernel puts a PIE that has an interpreter: ELF_ET_DYN_BASE (arch/x86/include/asm/elf.h), two thirds of the
 * address space, plus mmap_rnd_bits (28 by default) random pages. */
#define PIE_BASE 0x555555554000ULL
#define PIE_RANDOM_BITS 28

static inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#endif
