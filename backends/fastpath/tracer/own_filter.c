/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Processes that put a seccomp filter of their own on: the in-process library is told, and from then on makes no call
 * that the program did not make. Such a filter may kill for it.
 *
 * Rules of this file
 *  - The mark lies in the process's own struct dd_info: fork copies it, threads share it, and execve, which keeps
 *    filters, hands it on.
 *  - Told before the kernel sees the call, for other threads may run on; taken back if it fails, as it does for whoever
 *    only asks whether there are filters.
 */
#include "own_filter.h"

#include "abi.h"
#include "call.h"
#include "memory.h"

static const uint64_t mark_address = DD_LOADER_INFO + offsetof(struct dd_info, has_own_filter);

bool own_filter_is_on(pid_t tid) {
    uint32_t mark = 0;

    return memory_read(tid, mark_address, &mark, sizeof(mark)) == 0 && mark != 0;
}

static void put(const struct call *call, uint32_t mark) {
    /* Where there is no such page, there is no library. */
    (void)memory_write(call_tid(call), mark_address, &mark, sizeof(mark));
}

static void take_back(struct call *call) {
    if (call->registers.result < 0)
        put(call, 0);
}

void own_filter_enter(struct call *call) {
    if (own_filter_is_on(call_tid(call)))
        return;
    put(call, 1);
    call_at_exit(call, take_back);
}
