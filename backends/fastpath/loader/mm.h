/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What procfs says of the program: /proc/PID/auxv, and the ranges of /proc/PID/stat.
 */
#ifndef DD_LOADER_MM_H
#define DD_LOADER_MM_H

#include <stdint.h>

#include "map.h"

/* `stack` is the vector as the program gets it, `strings_end` the address behind the last string of its environment. */
void tell_procfs(const struct image *program, uint64_t *stack, uintptr_t strings_end);

#endif
