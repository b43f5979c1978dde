/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Host paths of PATH_MAX bytes and more, which the kernel does not take: they go through a directory that the tracer
 * holds open.
 */
#ifndef DD_TRACER_HOST_PATH_H
#define DD_TRACER_HOST_PATH_H

#include <limits.h>

struct call;

/* What the caller can give to the kernel in place of `host`: `host` itself, or text in `buffer` that is good until the
 * exit stop of this call. 0 or -errno. */
int host_path_for_caller(const struct call *call, const char *host, char buffer[PATH_MAX], const char **path);

/* For a call of the tracer's own: *directory is AT_FDCWD or a descriptor to be closed by host_path_close(). 0 or
 * -errno. */
int host_path_open(const char *host, int *directory, const char **path);
void host_path_close(int directory);

#endif
