/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Programs that run may not be written to.
 */
#ifndef DD_TRACER_TEXT_BUSY_H
#define DD_TRACER_TEXT_BUSY_H

#include <stdbool.h>

struct call;
struct dd_result;
struct path_call;

/* Whether this call would write to a program that a process of the session runs: ETXTBSY. */
bool text_is_busy(const struct call *call, const struct path_call *row, const struct dd_result *result);

#endif
