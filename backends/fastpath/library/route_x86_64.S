/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * syscall(3): numbers that the library answers go to fast_route, all others to the kernel exactly as libc's own does it,
 * without a frame: a child that shares the stack (vfork) comes back through it too.
 */
    .text
    .globl syscall
    .type syscall, @function
syscall:
    endbr64
    cmp     $511, %rdi
    ja      1f
    lea     fast_routed(%rip), %rax
    cmpb    $0, (%rax,%rdi)
    jne     fast_route
1:  mov     %rdi, %rax
    mov     %rsi, %rdi
    mov     %rdx, %rsi
    mov     %rcx, %rdx
    mov     %r8, %r10
    mov     %r9, %r8
    mov     8(%rsp), %r9
    syscall
    cmp     $-4095, %rax
    jae     2f
    ret
2:  mov     %rax, %rdi
    jmp     failed
    .size syscall, . - syscall

    .section .note.GNU-stack, "", @progbits
