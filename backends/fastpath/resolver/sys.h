/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the resolver asks of the system. Each user brings these: tracer and tests sys_direct.c, the library its own.
 *
 * Rules of this file
 *  - Paths are absolute host paths, may end in "/.", and may be longer than PATH_MAX: then by descriptors. After a hit of
 *    the directory cache they may be relative to the working directory.
 *  - No errno, no allocation; -errno comes back.
 */
#ifndef DD_SYS_H
#define DD_SYS_H

#include <stddef.h>

/* readlink(2): number of bytes, or -errno; -EINVAL: it is there and no link. */
int dd_sys_readlink(const char *path, char *buffer, size_t size);

/* st_mode as lstat(2) gives it; 0 or -errno. */
int dd_sys_mode(const char *path, unsigned *mode);

/* sys_direct.c only. For host paths of PATH_MAX bytes and more: opens (O_PATH) a directory on the way, so near that
 * the rest, at *rest, is shorter than PATH_MAX and holds the last component whole; the path must be canonical up to
 * there. The descriptor (close-on-exec, the caller closes it) or -errno. */
int dd_host_parent(const char *path, const char **rest);

#endif
