/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Binds as mounts: what the kernel refuses to do to a mount point, and between two mounts.
 */
#ifndef DD_TRACER_MOUNT_POINTS_H
#define DD_TRACER_MOUNT_POINTS_H

#include "resolver/resolver.h"

struct call;
struct path_call;

/* The -errno of a call whose second path's lookup failed: the kernel looks the first one up before, and that one's last
 * component was left to it. */
int mount_points_first_error(const struct path_call *row, const struct dd_result *first, int second_error);

/* 0, or the -errno with which the kernel refuses this call, whose paths are all resolved. */
int mount_points_refuse(const struct call *call, const struct path_call *row, const struct dd_result results[2]);

#endif
