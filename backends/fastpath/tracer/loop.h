/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The event loop.
 */
#ifndef DD_TRACER_LOOP_H
#define DD_TRACER_LOOP_H

struct tracer;

/* Until the last tracee has ended, or with --kill-on-exit until the main program has. Returns the main program's
 * status: its own, or 128+n by signal n. */
int loop_run(struct tracer *tracer);

#endif
