/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * /proc/PID/maps and its kin, with the guest's names of the mapped files.
 */
#ifndef DD_TRACER_PROC_MAPS_H
#define DD_TRACER_PROC_MAPS_H

#include <stdbool.h>

struct call;
struct dd_result;
struct path_call;

/* At the entry of a path call that would run on this file. True: it is an open for reading of such a file, and has
 * been dealt with. */
bool proc_maps_enter(struct call *call, const struct path_call *row, const struct dd_result *result);

#endif
