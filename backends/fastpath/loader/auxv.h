/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The vector that the kernel leaves at the stack pointer: argc, argv, NULL, environment, NULL, auxiliary entries,
 * AT_NULL.
 */
#ifndef DD_LOADER_AUXV_H
#define DD_LOADER_AUXV_H

#include <stdint.h>

struct auxiliary {
    uint64_t type;
    uint64_t value;
};

/* The first auxiliary entry. */
struct auxiliary *auxiliary_of(uint64_t *stack);

/* The value of an entry, or 0. */
uint64_t auxiliary_value(const struct auxiliary *entries, uint64_t type);

void auxiliary_set(struct auxiliary *entries, uint64_t type, uint64_t value);

/* Adds an entry at the end; returns the stack pointer that this leads to (16 bytes lower, so as aligned as before). */
uint64_t *auxiliary_add(uint64_t *stack, uint64_t type, uint64_t value);

#endif
