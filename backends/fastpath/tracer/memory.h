/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The memory of a tracee. -EFAULT where the kernel's own copy would fail.
 */
#ifndef DD_TRACER_MEMORY_H
#define DD_TRACER_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All of it, or -EFAULT. */
int memory_read(pid_t tid, uint64_t address, void *buffer, size_t size);
int memory_write(pid_t tid, uint64_t address, const void *bytes, size_t size);

/* As much as is mapped: length, or -EFAULT. */
int memory_read_some(pid_t tid, uint64_t address, void *buffer, size_t size);

/* strlen, or -EFAULT, -ENAMETOOLONG. */
int memory_read_string(pid_t tid, uint64_t address, char *buffer, size_t size);

#endif
