/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Whether a tracee has the tracer's own rights to files, so that the tracer may answer for the kernel.
 */
#ifndef DD_TRACER_CREDENTIALS_H
#define DD_TRACER_CREDENTIALS_H

#include <stdbool.h>

struct call;
struct tracee;

bool credentials_same(struct tracee *tracee);
void credentials_change(struct call *call); /* at the seccomp stop of a call that changes them */
void credentials_sandbox(struct call *call);

#endif
