/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Under which text a guest bound a Unix socket, by the name that the kernel knows it under.
 */
#ifndef DD_TRACER_SOCKET_NAMES_H
#define DD_TRACER_SOCKET_NAMES_H

enum { SOCKET_NAME_SIZE = 108 }; /* of sun_path (linux/un.h) */

void socket_names_put(const char *kernel_name, const char *given);
const char *socket_names_find(const char *kernel_name); /* or NULL */

#endif
