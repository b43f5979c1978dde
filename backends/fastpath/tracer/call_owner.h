/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Who deals with a system call: exactly one owner for each number of the architecture.
 */
#ifndef DD_TRACER_CALL_OWNER_H
#define DD_TRACER_CALL_OWNER_H

#include <stddef.h>

struct path_call;

enum owner {
    OWNER_REFUSED,     /* a number that this table does not know: ENOSYS, so that no new call goes round the tracer */
    OWNER_UNTRACED,    /* the kernel alone; its filter answer is constant, which the kernel remembers */
    OWNER_CONDITIONAL, /* filter.c decides by its arguments; what it traces goes to a handler named there */
    OWNER_ENOSYS,
    OWNER_EPERM,
    OWNER_PATH,        /* path_calls.c, translate.c */
    OWNER_READLINK,    /* readlink.c */
    OWNER_GETCWD,      /* cwd.c */
    OWNER_CHROOT,      /* cwd.c */
    OWNER_EXECVE,      /* exec.c */
    OWNER_EXECVEAT,
    OWNER_SOCKET_ADDRESS, /* sockets.c: an address goes in */
    OWNER_SOCKET_NAME,    /* sockets.c: an address comes back */
    OWNER_MESSAGE,        /* datagrams.c: the kernel alone, but in processes that have Unix datagram sockets */
    OWNER_CREDENTIALS,    /* credentials.c: they change. Where ids are emulated: identity.c */
    OWNER_SANDBOX,        /* credentials.c */
    OWNER_IDS,            /* identity.c where ids are emulated, else the kernel alone */
    OWNER_UTSNAME,        /* kernel_identity.c where it is set, else the kernel alone */
    OWNER_LISTING,        /* listing.c where mount points are missing, else the kernel alone */
};

struct call_owner {
    int number;
    enum owner owner;
};

extern const struct call_owner call_owners[]; /* all but OWNER_PATH's */
extern const size_t call_owner_count;

enum { CALL_NUMBERS = 512 }; /* above all of the kernel's */

/* Owner of a number; the first use builds an index. `row` (may be NULL): its row if it is a path call's. */
enum owner call_owner(long number, const struct path_call **row);

#endif
