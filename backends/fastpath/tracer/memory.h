/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The memory of a tracee. All return 0 (or a length) or -errno, as the kernel's copy_from_user would make the call answer.
 */
#ifndef DD_TRACER_MEMORY_H
#define DD_TRACER_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

int memory_read(pid_t tid, uint64_t address, void *buffer, size_t size);        /* 0 or -EFAULT; all of it or nothing */
int memory_write(pid_t tid, uint64_t address, const void *bytes, size_t size);  /* 0 or -EFAULT */
int memory_read_some(pid_t tid, uint64_t address, void *buffer, size_t size);   /* as much as is mapped: length or -EFAULT */
int memory_read_string(pid_t tid, uint64_t address, char *buffer, size_t size); /* strlen, or -EFAULT, -ENAMETOOLONG */

#endif
