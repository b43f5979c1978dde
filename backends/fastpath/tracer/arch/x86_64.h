/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * x86-64: where a system call's number, arguments and result stand in the registers, and how ptrace reads and writes
 * them.
 *
 * Rules of this file
 *  - Only what differs between processors stands here; arch.h lists what each such file must define.
 *  - At a seccomp stop the kernel has not yet run the call: orig_rax is the number, rax is -ENOSYS. A number of -1
 *    makes the kernel skip the call and leave rax as it is, which is how a call is answered.
 *  - PTRACE_GET_SYSCALL_INFO (Linux 5.3) and one PTRACE_POKEUSER for each register that differs cost half of what
 *    reading and writing all registers does.
 */
#ifndef DD_TRACER_ARCH_X86_64_H
#define DD_TRACER_ARCH_X86_64_H

#include <errno.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>

#define ARCH_AUDIT AUDIT_ARCH_X86_64
#define ARCH_AUDIT_COMPAT AUDIT_ARCH_I386 /* int 0x80 from a 64-bit process */
#define ARCH_FOREIGN_BIT 0x40000000U      /* __X32_SYSCALL_BIT (asm/unistd.h): numbers from here are the x32 ABI's */

enum { ARCH_ARGUMENTS = 6, ARCH_CALL_SIZE = 2 /* bytes of SYSCALL */ };

struct registers {
    long number;
    uint64_t arguments[ARCH_ARGUMENTS];
    uint64_t instruction; /* the one after SYSCALL */
    long result;
};

/* At a seccomp stop. 0 or -1. */
static inline int registers_get(pid_t tid, struct registers *registers) {
    struct __ptrace_syscall_info info;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof(info), &info) < 0 || info.op != PTRACE_SYSCALL_INFO_SECCOMP)
        return -1;
    registers->number = (long)info.seccomp.nr;
    for (int n = 0; n < ARCH_ARGUMENTS; n++)
        registers->arguments[n] = info.seccomp.args[n];
    registers->instruction = info.instruction_pointer;
    registers->result = -ENOSYS;
    return 0;
}

/* At an exit stop. 0 or -1. */
static inline int registers_get_result(pid_t tid, struct registers *registers) {
    struct __ptrace_syscall_info info;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof(info), &info) < 0 || info.op != PTRACE_SYSCALL_INFO_EXIT)
        return -1;
    registers->result = (long)info.exit.rval;
    return 0;
}

static inline void registers_poke(pid_t tid, size_t offset, uint64_t was, uint64_t is) {
    if (was != is)
        ptrace(PTRACE_POKEUSER, tid, (void *)offset, (void *)(uintptr_t)is);
}

/* Make the tracee's registers, which are `was`, to be `is`. */
static inline void registers_change(pid_t tid, const struct registers *was, const struct registers *is) {
    static const size_t at[ARCH_ARGUMENTS] = {
        offsetof(struct user_regs_struct, rdi), offsetof(struct user_regs_struct, rsi),
        offsetof(struct user_regs_struct, rdx), offsetof(struct user_regs_struct, r10),
        offsetof(struct user_regs_struct, r8),  offsetof(struct user_regs_struct, r9),
    };

    for (int n = 0; n < ARCH_ARGUMENTS; n++)
        registers_poke(tid, at[n], was->arguments[n], is->arguments[n]);
    registers_poke(tid, offsetof(struct user_regs_struct, orig_rax), (uint64_t)was->number, (uint64_t)is->number);
    registers_poke(tid, offsetof(struct user_regs_struct, rax), (uint64_t)was->result, (uint64_t)is->result);
    registers_poke(tid, offsetof(struct user_regs_struct, rip), was->instruction, is->instruction);
}

/* The kernel shall not run the call: the caller sees `result`. */
static inline void registers_skip(struct registers *registers, long result) {
    registers->number = -1;
    registers->result = result;
}

/* The kernel shall not run the call, and the caller shall make it again. */
static inline void registers_repeat(struct registers *registers) {
    registers->result = registers->number;
    registers->number = -1;
    registers->instruction -= ARCH_CALL_SIZE;
}

#endif
