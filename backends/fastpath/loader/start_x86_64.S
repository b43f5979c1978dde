/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Entry of the loader on x86-64, and the code of the page from which calls are let through untraced.
 */
    .section .text.start, "ax", @progbits
    .globl _start
    .type _start, @function
_start:
    mov     %rsp, %rdi
    /* The vector at the stack pointer grows downwards by one entry (auxv.c): our own frames start clear of it. */
    sub     $128, %rsp
    call    dd_load
    mov     %rdx, %rsp
    mov     %rax, -8(%rsp)
    /* As the kernel starts a program (ELF_PLAT_INIT, arch/x86/include/asm/elf.h): every general register is 0; rdx
     * would be a function for libc to register with atexit. */
    xor     %eax, %eax
    xor     %ebx, %ebx
    xor     %ecx, %ecx
    xor     %edx, %edx
    xor     %esi, %esi
    xor     %edi, %edi
    xor     %ebp, %ebp
    xor     %r8d, %r8d
    xor     %r9d, %r9d
    xor     %r10d, %r10d
    xor     %r11d, %r11d
    xor     %r12d, %r12d
    xor     %r13d, %r13d
    xor     %r14d, %r14d
    xor     %r15d, %r15d
    jmp     *-8(%rsp)
    .size _start, . - _start

/* long f(long number, a, b, c, d, e, f), spec A.2. A section of its own, because its page is moved to DD_PAGE. */
    .section .page, "ax", @progbits
    mov     %rdi, %rax
    mov     %rsi, %rdi
    mov     %rdx, %rsi
    mov     %rcx, %rdx
    mov     %r8, %r10
    mov     %r9, %r8
    mov     8(%rsp), %r9
    syscall
    ret

    .section .note.GNU-stack, "", @progbits
