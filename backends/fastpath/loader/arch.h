/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the loader needs to know of the processor; one header per architecture, and start_<machine>.S beside it.
 *
 * Each gives: MACHINE (e_machine), PIE_BASE and PIE_RANDOM_BITS (PIE_BASE 0: the kernel's mmap chooses, as where the
 * size of the address space is known at run time only), system_call().
 */
#ifndef DD_LOADER_ARCH_H
#define DD_LOADER_ARCH_H

#if defined(__x86_64__)
#include "arch_x86_64.h"
#else
#error "the loader does not know this architecture"
#endif

#endif
