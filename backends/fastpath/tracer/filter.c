/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The seccomp filter of all tracees, built from the tables of calls.
 *
 * Rules of this file
 *  - The number decides first. Numbers that are never traced reach a constant ALLOW having loaded nothing but number
 *    and architecture, so that the kernel (5.11 on) remembers it and does not run the filter for them.
 *  - The numbers lie in runs of one action each; a binary search finds the run.
 *  - Traced numbers share one tail: it allows what comes from the loader's text, and from the page where the fast path
 *    is on.
 *  - BPF jumps forward only and conditional jumps reach 255 instructions: far targets are JA, set when the target is
 *    placed.
 */
#define _GNU_SOURCE
#include "filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi.h"
#include "arch.h"
#include "call_owner.h"
#include "numbers.h"

enum target { TAIL_TRACE, TAIL_ENOSYS, TAIL_CONDITION };

enum { MAX_FIXUPS = 256 };

struct fixup {
    size_t at; /* a JA */
    enum target target;
    size_t condition;
};

struct builder {
    struct filter *filter;
    struct filter_needs needs;
    struct fixup fixups[MAX_FIXUPS];
    size_t fixup_count;
};

enum test_kind { EQUAL, LOW_BITS_EQUAL, ANY_BIT, NOT_NULL };

struct test {
    enum test_kind kind;
    int argument;
    uint32_t value;
};

enum { ACTION_TRACE = -1 }; /* else the errno that answers */

struct condition {
    int number;
    size_t count;
    struct test tests[2]; /* all must hold */
    int action; /* when they do; else the next row of the same number, then the kernel alone */
    enum { ALWAYS, WITH_IDS, WITH_FAST_PATH } when;
};

enum { SOCKET_TYPE_MASK = 0xf }; /* SOCK_TYPE_MASK (linux/net.h): the rest of the type are flags */

/* What the arguments decide: calls that matter only with an address, and what would break the tracer's hold. */
static const struct condition conditions[] = {
    {__NR_socket, 2, {{EQUAL, 0, AF_UNIX}, {LOW_BITS_EQUAL, 1, SOCK_DGRAM}}, ACTION_TRACE, ALWAYS},
    {__NR_sendto, 1, {{NOT_NULL, 4, 0}}, ACTION_TRACE, ALWAYS},
    {__NR_recvfrom, 1, {{NOT_NULL, 4, 0}}, ACTION_TRACE, ALWAYS},
    {__NR_accept, 1, {{NOT_NULL, 1, 0}}, ACTION_TRACE, ALWAYS},
    {__NR_accept4, 1, {{NOT_NULL, 1, 0}}, ACTION_TRACE, ALWAYS},
    {__NR_getsockopt, 2, {{EQUAL, 1, SOL_SOCKET}, {EQUAL, 2, SO_PEERCRED}}, ACTION_TRACE, WITH_IDS},
    /* A process that is not dumpable hides its memory from a tracer without privileges: the wish is granted in word
     * only. */
    {__NR_prctl, 2, {{EQUAL, 0, PR_SET_DUMPABLE}, {EQUAL, 1, 0}}, 0, ALWAYS},
    /* A listener answers before the tracer does, and "continue" would let a guest path through. As before Linux 5.0. */
    {__NR_seccomp, 2, {{EQUAL, 0, SECCOMP_SET_MODE_FILTER}, {ANY_BIT, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER}}, EINVAL,
     ALWAYS},
    /* From then on the in-process library makes no call of its own: the filter may kill for it. */
    {__NR_seccomp, 1, {{EQUAL, 0, SECCOMP_SET_MODE_FILTER}}, ACTION_TRACE, WITH_FAST_PATH},
    {__NR_prctl, 1, {{EQUAL, 0, PR_SET_SECCOMP}}, ACTION_TRACE, WITH_FAST_PATH},
    /* As in a chroot: no new user namespace (ids would mean something else), no mounts of one's own. */
    /* And no process that the tracer does not hold: its path calls would all fail, and it would outlive the session. */
    {__NR_clone, 1, {{ANY_BIT, 0, CLONE_NEWUSER | CLONE_NEWNS | CLONE_UNTRACED}}, EPERM, ALWAYS},
    {__NR_unshare, 1, {{ANY_BIT, 0, CLONE_NEWUSER | CLONE_NEWNS}}, EPERM, ALWAYS},
};

enum { CONDITION_COUNT = sizeof(conditions) / sizeof(conditions[0]) };

/* ---- instructions ----------------------------------------------------------------------------------------------- */

static size_t emit(struct builder *builder, uint16_t code, uint8_t if_true, uint8_t if_false, uint32_t k) {
    struct filter *filter = builder->filter;

    if (filter->length == FILTER_LIMIT) {
        filter->too_long = true;
        return 0;
    }
    filter->code[filter->length] = (struct sock_filter){code, if_true, if_false, k};
    return filter->length++;
}

static void emit_load(struct builder *builder, size_t offset) {
    emit(builder, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void emit_return(struct builder *builder, uint32_t value) {
    emit(builder, BPF_RET | BPF_K, 0, 0, value);
}

static void emit_errno(struct builder *builder, int error) {
    emit_return(builder, SECCOMP_RET_ERRNO | (uint32_t)error);
}

static void emit_jump(struct builder *builder, enum target target, size_t condition) {
    size_t at = emit(builder, BPF_JMP | BPF_JA, 0, 0, 0);

    if (builder->fixup_count == MAX_FIXUPS) {
        builder->filter->too_long = true;
        return;
    }
    builder->fixups[builder->fixup_count++] = (struct fixup){at, target, condition};
}

/* The next instruction is what those jumps lead to. */
static void place(struct builder *builder, enum target target, size_t condition) {
    for (size_t n = 0; n < builder->fixup_count; n++) {
        const struct fixup *fixup = &builder->fixups[n];
        if (fixup->target == target && fixup->condition == condition)
            builder->filter->code[fixup->at].k = (uint32_t)(builder->filter->length - fixup->at - 1);
    }
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

struct action {
    enum { ALLOW, ERROR, JUMP } kind;
    int error;
    enum target target;
    size_t condition;
};

static bool applies(const struct condition *condition, struct filter_needs needs) {
    return condition->when == ALWAYS || (condition->when == WITH_IDS ? needs.ids : needs.fast_path);
}

/* From this row on, the first of the number. */
static struct action conditional_action(size_t from, long number, struct filter_needs needs) {
    for (size_t n = from; n < CONDITION_COUNT; n++)
        if (conditions[n].number == number && applies(&conditions[n], needs))
            return (struct action){.kind = JUMP, .target = TAIL_CONDITION, .condition = n};
    return (struct action){.kind = ALLOW};
}

static struct action action_of(long number, struct filter_needs needs) {
    const struct action traced = {.kind = JUMP, .target = TAIL_TRACE};
    const struct action untraced = {.kind = ALLOW};

    /* From the page the fast path may use it: it resolves without links there. */
    if (number == __NR_openat2 && needs.fast_path)
        return (struct action){.kind = JUMP, .target = TAIL_ENOSYS};
    switch (call_owner(number, NULL)) {
    case OWNER_UNTRACED:
    case OWNER_MESSAGE:
        return untraced;
    case OWNER_CONDITIONAL:
        return conditional_action(0, number, needs);
    case OWNER_EPERM:
        return (struct action){.kind = ERROR, .error = EPERM};
    case OWNER_REFUSED:
    case OWNER_ENOSYS:
        return (struct action){.kind = ERROR, .error = ENOSYS};
    case OWNER_IDS:
        return needs.ids ? traced : untraced;
    case OWNER_UTSNAME:
        return needs.utsname ? traced : untraced;
    case OWNER_LISTING:
        return needs.listings ? traced : untraced;
    case OWNER_PATH:
    case OWNER_READLINK:
    case OWNER_GETCWD:
    case OWNER_CHROOT:
    case OWNER_EXECVE:
    case OWNER_EXECVEAT:
    case OWNER_SOCKET_ADDRESS:
    case OWNER_SOCKET_NAME:
    case OWNER_CREDENTIALS:
    case OWNER_SANDBOX:
    default:
        return traced;
    }
}

static bool same_action(struct action a, struct action b) {
    return a.kind == b.kind && a.error == b.error && a.target == b.target && a.condition == b.condition;
}

struct run {
    uint32_t first;
    struct action action;
};

static size_t find_runs(struct run *runs, struct filter_needs needs) {
    size_t count = 0;

    for (uint32_t number = 0; number <= CALL_NUMBERS; number++) {
        struct action action = action_of(number, needs);
        if (count == 0 || !same_action(action, runs[count - 1].action))
            runs[count++] = (struct run){number, action};
    }
    return count;
}

static void emit_action(struct builder *builder, struct action action) {
    if (action.kind == ALLOW)
        emit_return(builder, SECCOMP_RET_ALLOW);
    else if (action.kind == ERROR)
        emit_errno(builder, action.error);
    else
        emit_jump(builder, action.target, action.condition);
}

static void emit_search(struct builder *builder, const struct run *runs, size_t count) {
    if (count == 1) {
        emit_action(builder, runs[0].action);
        return;
    }
    size_t half = count / 2;
    emit(builder, BPF_JMP | BPF_JGE | BPF_K, 0, 1, runs[half].first);
    size_t to_upper = emit(builder, BPF_JMP | BPF_JA, 0, 0, 0);
    emit_search(builder, runs, half);
    builder->filter->code[to_upper].k = (uint32_t)(builder->filter->length - to_upper - 1);
    emit_search(builder, runs + half, count - half);
}

/* ---- tails ------------------------------------------------------------------------------------------------------ */

static size_t low_word(int argument) {
    return offsetof(struct seccomp_data, args) + (size_t)argument * sizeof(uint64_t); /* little endian */
}

/* `otherwise` is one instruction. */
static void emit_test(struct builder *builder, const struct test *test, struct action otherwise) {
    emit_load(builder, low_word(test->argument));
    switch (test->kind) {
    case EQUAL:
        emit(builder, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, test->value);
        break;
    case LOW_BITS_EQUAL:
        emit(builder, BPF_ALU | BPF_AND | BPF_K, 0, 0, SOCKET_TYPE_MASK);
        emit(builder, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, test->value);
        break;
    case ANY_BIT:
        emit(builder, BPF_JMP | BPF_JSET | BPF_K, 1, 0, test->value);
        break;
    case NOT_NULL:
    default:
        emit(builder, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, 0);
        emit_load(builder, low_word(test->argument) + sizeof(uint32_t));
        emit(builder, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
        break;
    }
    emit_action(builder, otherwise);
}

static void emit_condition(struct builder *builder, size_t n) {
    const struct condition *condition = &conditions[n];

    if (!applies(condition, builder->needs))
        return;
    struct action otherwise = conditional_action(n + 1, condition->number, builder->needs);
    place(builder, TAIL_CONDITION, n);
    for (size_t test = 0; test < condition->count; test++)
        emit_test(builder, &condition->tests[test], otherwise);
    if (condition->action == ACTION_TRACE)
        emit_jump(builder, TAIL_TRACE, 0);
    else
        emit_errno(builder, condition->action);
}

/* Allow what is called from [start, start + size), which lies within 4 GiB of one another; else go on below. */
static void emit_allow_from(struct builder *builder, uint64_t start, uint64_t size) {
    emit_load(builder, offsetof(struct seccomp_data, instruction_pointer) + sizeof(uint32_t));
    emit(builder, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, (uint32_t)(start >> 32));
    emit_load(builder, offsetof(struct seccomp_data, instruction_pointer));
    emit(builder, BPF_JMP | BPF_JGE | BPF_K, 0, 2, (uint32_t)start);
    emit(builder, BPF_JMP | BPF_JGE | BPF_K, 1, 0, (uint32_t)(start + size));
    emit_return(builder, SECCOMP_RET_ALLOW);
}

static void emit_tails(struct builder *builder) {
    for (size_t n = 0; n < CONDITION_COUNT; n++)
        emit_condition(builder, n);
    if (builder->needs.fast_path) {
        place(builder, TAIL_ENOSYS, 0);
        emit_allow_from(builder, DD_PAGE, DD_PAGE_SIZE);
        emit_errno(builder, ENOSYS);
    }
    place(builder, TAIL_TRACE, 0);
    if (builder->needs.fast_path)
        emit_allow_from(builder, DD_PAGE, DD_PAGE_SIZE);
    emit_allow_from(builder, DD_LOADER_TEXT, DD_LOADER_TEXT_SIZE);
    emit_return(builder, SECCOMP_RET_TRACE);
}

/* int 0x80 from a 64-bit process: Wine's WoW64 sets up its segments so. What takes a path is not translated, so
 * refused. */
static void emit_compat(struct builder *builder) {
    enum { I386_MODIFY_LDT = 123, I386_SET_THREAD_AREA = 243 }; /* asm/unistd_32.h */

    emit_load(builder, offsetof(struct seccomp_data, arch));
    emit(builder, BPF_JMP | BPF_JEQ | BPF_K, 6, 0, ARCH_AUDIT);
    emit(builder, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, ARCH_AUDIT_COMPAT);
    emit_load(builder, offsetof(struct seccomp_data, nr));
    emit(builder, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, I386_MODIFY_LDT);
    emit(builder, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, I386_SET_THREAD_AREA);
    emit_return(builder, SECCOMP_RET_ALLOW);
    emit_errno(builder, ENOSYS);
}

bool filter_build(struct filter *filter, struct filter_needs needs) {
    struct builder builder = {.filter = filter, .needs = needs};
    struct run runs[CALL_NUMBERS + 1];

    filter->length = 0;
    filter->too_long = false;
    emit_compat(&builder);
    emit_load(&builder, offsetof(struct seccomp_data, nr));
    emit(&builder, BPF_JMP | BPF_JGE | BPF_K, 0, 1, ARCH_FOREIGN_BIT);
    emit_errno(&builder, ENOSYS);
    emit_search(&builder, runs, find_runs(runs, needs));
    emit_tails(&builder);
    return !filter->too_long;
}

int filter_install(const struct filter *filter) {
    struct sock_fprog program = {(unsigned short)filter->length, (struct sock_filter *)(uintptr_t)filter->code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) != 0)
        return -errno;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0L, &program) == 0 ? 0 : -errno;
}
