/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * readlink and readlinkat.
 */
#ifndef DD_TRACER_READLINK_H
#define DD_TRACER_READLINK_H

struct call;

void readlink_enter(struct call *call);

#endif
