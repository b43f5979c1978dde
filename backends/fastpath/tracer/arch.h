/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The processor: one small header each. It defines
 *   struct registers with number, arguments[ARCH_ARGUMENTS], result and what else it needs;
 *   registers_get (at a seccomp stop), registers_get_result (at an exit stop), registers_change (write what differs);
 *   registers_skip (the kernel shall not run the call), registers_repeat (nor now, but again);
 *   ARCH_AUDIT, ARCH_AUDIT_COMPAT, ARCH_FOREIGN_BIT (filter.c).
 */
#ifndef DD_TRACER_ARCH_H
#define DD_TRACER_ARCH_H

#if defined(__x86_64__)
#include "arch/x86_64.h"
#else
#error "the tracer does not know this processor"
#endif

#endif
