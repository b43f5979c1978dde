/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The vector that the kernel leaves at the stack pointer.
 *
 * No entry can be given up for ours (the kernel writes no AT_IGNORE, and a program may ask for any other), and behind
 * AT_NULL lie the bytes of AT_RANDOM. So all that is in front of AT_NULL moves down by one entry. Nothing points into
 * it yet but the stack pointer: argv and the environment are pointers to strings above, and those stay.
 */
#include "auxv.h"

#include <elf.h>

struct auxiliary *auxiliary_of(uint64_t *stack) {
    uint64_t *word = stack + 1 + stack[0] + 1;

    while (*word)
        word++;
    return (struct auxiliary *)(word + 1);
}

uint64_t auxiliary_value(const struct auxiliary *entries, uint64_t type) {
    for (; entries->type != AT_NULL; entries++)
        if (entries->type == type)
            return entries->value;
    return 0;
}

void auxiliary_set(struct auxiliary *entries, uint64_t type, uint64_t value) {
    for (; entries->type != AT_NULL; entries++)
        if (entries->type == type)
            entries->value = value;
}

uint64_t *auxiliary_add(uint64_t *stack, uint64_t type, uint64_t value) {
    const uint64_t *end;
    struct auxiliary *entry = auxiliary_of(stack);

    while (entry->type != AT_NULL)
        entry++;
    end = (const uint64_t *)entry;
    for (uint64_t *word = stack; word < end; word++)
        word[-2] = *word;
    entry[-1] = (struct auxiliary){.type = type, .value = value};
    return stack - 2;
}
