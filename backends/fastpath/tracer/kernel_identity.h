/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The kernel that the guest believes to run on (-k).
 */
#ifndef DD_TRACER_KERNEL_IDENTITY_H
#define DD_TRACER_KERNEL_IDENTITY_H

#include <stdbool.h>

struct call;
struct tracer;

bool kernel_identity_set(void);
void kernel_identity_tell(char fields[6][65]); /* struct utsname (linux/utsname.h) */

/* Read -k: a release, or `\sysname\nodename\release\version\machine\domainname\hwcap\`. False: it is neither. */
bool kernel_identity_parse(const char *text);

/* The same in /proc: files of our own are bound over the kernel's. 0 or -errno. */
int kernel_identity_bind(struct tracer *tracer);

void kernel_identity_uname(struct call *call);

#endif
