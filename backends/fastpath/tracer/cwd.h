/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * getcwd and chroot. chdir is a path call as any other (path_calls.c) and fchdir is the kernel's alone: its working
 * directory is the host directory of the guest's.
 */
#ifndef DD_TRACER_CWD_H
#define DD_TRACER_CWD_H

struct call;

void getcwd_enter(struct call *call);
void chroot_enter(struct call *call);

#endif
