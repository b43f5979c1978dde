/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * System calls of the library on x86-64.
 *
 * Rules of this file
 *  - page_call enters the page at the instruction, so no argument moves. The call writes below the stack pointer: the
 *    library is built without a red zone.
 *  - raw_call is in the library's own text, so the tracer sees it and answers in guest terms.
 */
#ifndef DD_LIBRARY_ARCH_X86_64_H
#define DD_LIBRARY_ARCH_X86_64_H

#include "abi.h"

static inline long page_call(long number, long a, long b, long c, long d, long e) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;

    __asm__ volatile("call *%[at]"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), [at] "r"(DD_PAGE_SYSCALL)
                     : "rcx", "r11", "memory");
    return result;
}

static inline long raw_call(long number, long a, long b, long c, long d, long e) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}

static inline long raw_call6(long number, const long *arguments) {
    long result;
    register long r10 __asm__("r10") = arguments[3];
    register long r8 __asm__("r8") = arguments[4];
    register long r9 __asm__("r9") = arguments[5];

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#endif
