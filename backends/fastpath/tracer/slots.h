/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Scratch memory in the loader's slots (abi.h): which part is in use, by one thread of any process at a time.
 */
#ifndef DD_TRACER_SLOTS_H
#define DD_TRACER_SLOTS_H

#include <stddef.h>
#include <stdint.h>

#include "abi.h"

#define SLOTS_SIZE ((size_t)DD_SLOT_COUNT * DD_SLOT_SIZE)

struct tracee;

uint64_t slots_take(struct tracee *tracee, size_t size); /* address of `size` bytes in a row, or 0 */
uint64_t slots_address(const struct tracee *tracee);     /* of what it holds */
void slots_free(struct tracee *tracee);                  /* whatever it holds */

#endif
