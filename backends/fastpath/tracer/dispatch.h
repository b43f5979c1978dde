/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which handler a stopped call goes to.
 */
#ifndef DD_TRACER_DISPATCH_H
#define DD_TRACER_DISPATCH_H

struct call;

void dispatch(struct call *call);

#endif
