/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * System calls of the library on arm64: as on x86-64, but the page is entered as the C function that it is.
 */
#ifndef DD_LIBRARY_ARCH_AARCH64_H
#define DD_LIBRARY_ARCH_AARCH64_H

#include "abi.h"

static inline long page_call(long number, long a, long b, long c, long d, long e) {
    return ((long (*)(long, long, long, long, long, long, long))(uintptr_t)DD_PAGE)(number, a, b, c, d, e, 0);
}

static inline long raw_call6(long number, const long *arguments) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = arguments[0];
    register long x1 __asm__("x1") = arguments[1];
    register long x2 __asm__("x2") = arguments[2];
    register long x3 __asm__("x3") = arguments[3];
    register long x4 __asm__("x4") = arguments[4];
    register long x5 __asm__("x5") = arguments[5];

    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}

static inline long raw_call(long number, long a, long b, long c, long d, long e) {
    return raw_call6(number, (const long[]){a, b, c, d, e, 0});
}

#endif
