/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which handler a stopped call goes to: its owner's (call_owner.c).
 */
#include "dispatch.h"

#include <errno.h>

#include "call.h"
#include "call_owner.h"
#include "credentials.h"
#include "cwd.h"
#include "datagrams.h"
#include "exec.h"
#include "identity.h"
#include "kernel_identity.h"
#include "listing.h"
#include "numbers.h"
#include "own_filter.h"
#include "readlink.h"
#include "sockets.h"
#include "translate.h"

/* What filter.c lets stop by its arguments. */
static void dispatch_conditional(struct call *call) {
    if (call->number == __NR_sendto)
        sockets_address_enter(call);
    else if (call->number == __NR_socket)
        datagrams_socket_enter(call);
    else if (call->number == __NR_getsockopt)
        identity_call(call);
    else if (call->number == __NR_seccomp || call->number == __NR_prctl)
        own_filter_enter(call);
    else
        sockets_name_enter(call);
}

void dispatch(struct call *call) {
    const struct path_call *row = NULL;

    switch (call_owner(call->number, &row)) {
    case OWNER_PATH:
        translate(call, row);
        break;
    case OWNER_READLINK:
        readlink_enter(call);
        break;
    case OWNER_GETCWD:
        getcwd_enter(call);
        break;
    case OWNER_CHROOT:
        chroot_enter(call);
        break;
    case OWNER_EXECVE:
        exec_enter(call->tracer, call, false);
        break;
    case OWNER_EXECVEAT:
        exec_enter(call->tracer, call, true);
        break;
    case OWNER_SOCKET_ADDRESS:
        sockets_address_enter(call);
        break;
    case OWNER_SOCKET_NAME:
        sockets_name_enter(call);
        break;
    case OWNER_MESSAGE:
        datagrams_message_enter(call);
        break;
    case OWNER_CONDITIONAL:
        dispatch_conditional(call);
        break;
    case OWNER_CREDENTIALS:
        if (identity_emulated())
            identity_call(call);
        else
            credentials_change(call);
        break;
    case OWNER_SANDBOX:
        credentials_sandbox(call);
        break;
    case OWNER_IDS:
        identity_call(call);
        break;
    case OWNER_UTSNAME:
        kernel_identity_uname(call);
        break;
    case OWNER_LISTING:
        listing_enter(call);
        break;
    case OWNER_UNTRACED: /* the filter never stops these; should one stop, it is not let through */
    case OWNER_REFUSED:
    case OWNER_ENOSYS:
    case OWNER_EPERM:
    default:
        call_answer(call, -ENOSYS);
        break;
    }
}
