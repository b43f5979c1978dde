/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Names of Unix sockets, there and back.
 */
#ifndef DD_TRACER_SOCKETS_H
#define DD_TRACER_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

struct call;

void sockets_address_enter(struct call *call); /* bind, connect, sendto: an address goes in */
void sockets_name_enter(struct call *call);    /* getsockname, getpeername, accept, accept4, recvfrom: one comes back */

/* The parts of both, for addresses that stand in a message's header. sockets_translate: the host's address for the one
 * at `at`: 1; 0: it is none that needs to be translated; -errno. sockets_translate_back: the one that has come to `at`,
 * where there is room for `room` bytes; its length is at `length_at`. */
int sockets_translate(struct call *call, uint64_t at, size_t length, bool makes, struct sockaddr_un *address);
void sockets_translate_back(struct call *call, uint64_t at, uint64_t length_at, size_t room);

#endif
