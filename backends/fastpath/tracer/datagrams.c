/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Addresses in the headers of messages. Only Unix datagram sockets take a name there, and few programs have one
 * (logging, sd_notify), while desktop and Steam send thousands of other messages a second, which must not stop (design
 * 3.3).
 *
 * Rules of this file
 *  - So a process is watched from its first such socket on: in place of that call the tracer has it put one more
 *    seccomp filter on all of its threads, and then make the call again. Children inherit filter and mark.
 *  - The mark lies in the loader's memory, which fork copies and exec drops.
 *  - sendmmsg sends one translated message at a time: it may always send fewer than asked.
 */
#define _GNU_SOURCE
#include "datagrams.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "abi.h"
#include "call.h"
#include "memory.h"
#include "numbers.h"
#include "sockets.h"

#define MARK_ADDRESS (DD_SLOTS - sizeof(uint64_t)) /* behind the info page's struct, before the slots */

static const uint64_t mark = 0x6465686374617764ULL;

/* Not from the loader's text or the page: neither sends messages. */
static const struct sock_filter watching[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH_AUDIT, 0, 5),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_sendmsg, 4, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_recvmsg, 3, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_sendmmsg, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_recvmmsg, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
};

enum { WATCHING = sizeof(watching) / sizeof(watching[0]) };

/* ---- watching a process ------------------------------------------------------------------------------------------ */

static void make_call_again(struct call *call) {
    if (memory_write(call_tid(call), MARK_ADDRESS, &mark, sizeof(mark)) != 0)
        call->registers.result = -ENOMEM;
    else
        registers_repeat(&call->registers);
}

void datagrams_socket_enter(struct call *call) {
    struct {
        struct sock_fprog program;
        struct sock_filter code[WATCHING];
    } scratch = {.program = {.len = WATCHING}};
    uint64_t found = 0;

    if (memory_read(call_tid(call), MARK_ADDRESS, &found, sizeof(found)) != 0 || found == mark)
        return;
    uint64_t address = call_scratch(call, sizeof(scratch));
    scratch.program.filter = (struct sock_filter *)(uintptr_t)(address + offsetof(__typeof__(scratch), code));
    memcpy(scratch.code, watching, sizeof(watching));
    if (address == 0 || memory_write(call_tid(call), address, &scratch, sizeof(scratch)) != 0) {
        call_answer(call, -ENOMEM);
        return;
    }
    call_set_number(call, __NR_seccomp);
    call_set_argument(call, 0, SECCOMP_SET_MODE_FILTER);
    call_set_argument(call, 1, SECCOMP_FILTER_FLAG_TSYNC);
    call_set_argument(call, 2, address);
    call_at_exit(call, make_call_again);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* The header's address in host terms: 1, and `header` (of the given size) and address are in scratch memory; 0; -errno.
 * */
static int translate_header(struct call *call, struct mmsghdr *header, size_t size, uint64_t *scratch) {
    struct sockaddr_un address;
    const struct msghdr *message = &header->msg_hdr;

    if (memory_read(call_tid(call), call_argument(call, 1), header, size) != 0)
        return 0;
    uint64_t name_at = (uint64_t)(uintptr_t)message->msg_name;
    int outcome = sockets_translate(call, name_at, message->msg_namelen, false, &address);
    if (outcome <= 0)
        return outcome;
    *scratch = call_scratch(call, size + sizeof(address));
    if (*scratch == 0)
        return -ENOMEM;
    header->msg_hdr.msg_name = (void *)(uintptr_t)(*scratch + size);
    header->msg_hdr.msg_namelen = sizeof(address);
    if (memory_write(call_tid(call), *scratch, header, size) != 0 ||
        memory_write(call_tid(call), *scratch + size, &address, sizeof(address)) != 0)
        return -EFAULT;
    return 1;
}

static void send_one(struct call *call) {
    struct mmsghdr header;
    uint64_t scratch;

    int outcome = translate_header(call, &header, sizeof(header.msg_hdr), &scratch);
    if (outcome < 0)
        call_answer(call, outcome);
    else if (outcome > 0)
        call_set_argument(call, 1, scratch);
}

/* The kernel has written into the copy how much it sent. */
static void tell_length(struct call *call) {
    const size_t at = offsetof(struct mmsghdr, msg_len);
    unsigned length;

    if (call->registers.result != 1)
        return;
    if (memory_read(call_tid(call), call->tracee->header_copy + at, &length, sizeof(length)) != 0 ||
        memory_write(call_tid(call), call_argument(call, 1) + at, &length, sizeof(length)) != 0)
        call->registers.result = -EFAULT;
}

static void send_first_of_many(struct call *call) {
    struct mmsghdr header;
    uint64_t scratch;

    if ((unsigned)call_argument(call, 2) == 0)
        return;
    int outcome = translate_header(call, &header, sizeof(header), &scratch);
    if (outcome < 0) {
        call_answer(call, outcome);
    } else if (outcome > 0) {
        call->tracee->header_copy = scratch;
        call_set_argument(call, 1, scratch);
        call_set_argument(call, 2, 1);
        call_at_exit(call, tell_length);
    } else if ((unsigned)call_argument(call, 2) > 1) {
        call_set_argument(call, 2, 1); /* the next may have a name */
    }
}

static void translate_sender(struct call *call) {
    uint64_t header_at = call_argument(call, 1);
    struct msghdr header;

    if (call->registers.result < 0 || memory_read(call_tid(call), header_at, &header, sizeof(header)) != 0)
        return;
    sockets_translate_back(call, (uint64_t)(uintptr_t)header.msg_name,
                           header_at + offsetof(struct msghdr, msg_namelen), call->tracee->name_room);
}

static void receive(struct call *call) {
    struct msghdr header;

    if (memory_read(call_tid(call), call_argument(call, 1), &header, sizeof(header)) != 0 || header.msg_name == NULL)
        return;
    call->tracee->name_room = header.msg_namelen;
    call_at_exit(call, translate_sender);
}

static uint64_t header_of_many(const struct call *call, size_t n) {
    return call_argument(call, 1) + n * sizeof(struct mmsghdr);
}

/* As many as the kernel received; the room for each name was read before it wrote their lengths. */
static void translate_senders(struct call *call) {
    size_t count = call->registers.result > 0 ? (size_t)call->registers.result : 0;
    struct mmsghdr header;
    socklen_t room;

    for (size_t n = 0; n < count && (n + 1) * sizeof(room) <= call->tracee->byte_count; n++) {
        uint64_t at = header_of_many(call, n);
        memcpy(&room, call->tracee->bytes + n * sizeof(room), sizeof(room));
        if (memory_read(call_tid(call), at, &header, sizeof(header)) == 0 && header.msg_hdr.msg_name != NULL)
            sockets_translate_back(call, (uint64_t)(uintptr_t)header.msg_hdr.msg_name,
                                   at + offsetof(struct mmsghdr, msg_hdr.msg_namelen), room);
    }
}

static void receive_many(struct call *call) {
    size_t count = (unsigned)call_argument(call, 2) < UIO_MAXIOV ? (unsigned)call_argument(call, 2) : UIO_MAXIOV;
    socklen_t *rooms = calloc(count + 1, sizeof(*rooms));
    struct mmsghdr header;
    size_t known = 0;

    if (rooms == NULL)
        return;
    while (known < count && memory_read(call_tid(call), header_of_many(call, known), &header, sizeof(header)) == 0)
        rooms[known++] = header.msg_hdr.msg_namelen;
    call->tracee->bytes = (char *)rooms;
    call->tracee->byte_count = known * sizeof(*rooms);
    call_at_exit(call, translate_senders);
}

void datagrams_message_enter(struct call *call) {
    if (call->number == __NR_sendmsg)
        send_one(call);
    else if (call->number == __NR_sendmmsg)
        send_first_of_many(call);
    else if (call->number == __NR_recvmmsg)
        receive_many(call);
    else
        receive(call);
}
