/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The main program's start.
 */
#ifndef DD_TRACER_START_H
#define DD_TRACER_START_H

#include <stddef.h>
#include <stdint.h>

struct filter;
struct tracer;

/* Fork the main program, seize it, let it go. Ends the process where that cannot be, with 126 or 127 where the program
 * is why. */
void start_main(struct tracer *tracer, const struct filter *filter);

/* Scratch memory for the very first exec, before the loader is mapped: the main program is still a copy of the tracer,
 * so an address of the tracer's own will do. 0: not so much. */
uint64_t start_scratch(size_t size);

#endif
