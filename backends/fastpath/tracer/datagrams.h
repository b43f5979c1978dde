/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Addresses in the headers of messages: sendmsg, sendmmsg, recvmsg, recvmmsg.
 */
#ifndef DD_TRACER_DATAGRAMS_H
#define DD_TRACER_DATAGRAMS_H

struct call;

void datagrams_socket_enter(struct call *call);  /* socket(AF_UNIX, SOCK_DGRAM): from now on this process is watched */
void datagrams_message_enter(struct call *call); /* in a process that is watched */

#endif
