/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The session's epoch page (abi.h): what the in-process library remembers of names is good as long as the counter stands.
 */
#ifndef DD_TRACER_EPOCH_H
#define DD_TRACER_EPOCH_H

#include <stdbool.h>

struct call;
struct dd_result;
struct path_call;

int epoch_open(int descriptor);                                                 /* its file, which is closed; 0 or -errno */
bool epoch_concerns(const struct path_call *row, const struct dd_result *result); /* the call may change where names lead */
void epoch_bump_on_success(struct call *call);                                  /* at the exit stop */

#endif
