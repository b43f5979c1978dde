/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Says what stands in the registers and flags when a program begins: no libc, no start code but its own.
 *
 *   gcc -static -nostdlib -ffreestanding -fno-stack-protector tests/exec_registers.c
 */
#include <asm/unistd.h>

#define COUNT 24

static const char *const names[COUNT] = {
    "rax", "rbx", "rcx", "rdx",   "rsi",       "rdi",   "rbp", "r8",   "r9",    "r10", "r11", "r12",
    "r13", "r14", "r15", "sp%16", "direction", "mxcsr", "x87", "xmm0", "xmm15", "fs",  "gs",  "argc",
};

long registers_at_start[COUNT];

__asm__(".text\n"
        ".globl _start\n"
        "_start:\n"
        "    mov %rax, registers_at_start(%rip)\n"
        "    mov %rbx, registers_at_start+8(%rip)\n"
        "    mov %rcx, registers_at_start+16(%rip)\n"
        "    mov %rdx, registers_at_start+24(%rip)\n"
        "    mov %rsi, registers_at_start+32(%rip)\n"
        "    mov %rdi, registers_at_start+40(%rip)\n"
        "    mov %rbp, registers_at_start+48(%rip)\n"
        "    mov %r8, registers_at_start+56(%rip)\n"
        "    mov %r9, registers_at_start+64(%rip)\n"
        "    mov %r10, registers_at_start+72(%rip)\n"
        "    mov %r11, registers_at_start+80(%rip)\n"
        "    mov %r12, registers_at_start+88(%rip)\n"
        "    mov %r13, registers_at_start+96(%rip)\n"
        "    mov %r14, registers_at_start+104(%rip)\n"
        "    mov %r15, registers_at_start+112(%rip)\n"
        "    mov %rsp, %rax\n"
        "    and $15, %eax\n"
        "    mov %rax, registers_at_start+120(%rip)\n"
        "    pushfq\n"
        "    pop %rax\n"
        "    and $0x400, %eax\n"
        "    mov %rax, registers_at_start+128(%rip)\n"
        "    stmxcsr registers_at_start+136(%rip)\n"
        "    fnstcw registers_at_start+144(%rip)\n"
        "    movq %xmm0, registers_at_start+152(%rip)\n"
        "    movq %xmm15, registers_at_start+160(%rip)\n"
        "    mov %fs, registers_at_start+168(%rip)\n"
        "    mov %gs, registers_at_start+176(%rip)\n"
        "    mov (%rsp), %rax\n"
        "    mov %rax, registers_at_start+184(%rip)\n"
        "    and $-16, %rsp\n"
        "    call tell\n");

static long call(long number, long a, long b, long c) {
    long result;

    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

static void say(const char *text) {
    long length = 0;

    while (text[length])
        length++;
    call(__NR_write, 1, (long)text, length);
}

void tell(void) {
    for (int n = 0; n < COUNT; n++) {
        char digits[] = " 0000000000000000\n";

        for (int digit = 0; digit < 16; digit++)
            digits[16 - digit] = "0123456789abcdef"[registers_at_start[n] >> (4 * digit) & 15];
        say(names[n]);
        say(digits);
    }
    call(__NR_exit_group, 0, 0, 0);
}
