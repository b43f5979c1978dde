/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * THE contract between tracer, loader and in-process library: addresses, layout, names, versions.
 *
 * Rules of this file
 *  - Every number that two of them share stands here and nowhere else; tests parse it against the launcher's constants.
 *  - A change of anything that a running process could see raises DD_ABI_VERSION.
 *  - Plain C11 and constants only: it is compiled freestanding (loader), into the tracer and into guests' libraries.
 */
#ifndef DD_ABI_H
#define DD_ABI_H

#include <stdint.h>

#define DD_ABI_VERSION 2

/* The one executable page from which calls are let through untraced (spec A.2). Below 64 GiB: fits 39-bit address spaces. The
 * loader brings its template; the library moves that there at its first call, if nobody else has taken the place: ASan's shadow
 * memory lies there, and ASan ends a program in which it finds anything in its way. */
#define DD_PAGE 0xffff00000ULL
#define DD_PAGE_SIZE 4096ULL
#define DD_PAGE_TEMPLATE (DD_LOADER_BASE + 0x20000ULL)

/* Where the loader lives: x86-64 beside the native PIE base and outside ASan's shadow; arm64 within 39 bits. The parts are
 * 64 KiB apart, so that 4, 16 and 64 KiB pages all work. The page's code is `long f(long number, a, b, c, d, e, f)`; on x86-64
 * whoever has set the system call's own registers may enter at the instruction itself. */
#if defined(__x86_64__)
#define DD_LOADER_BASE 0x550000000000ULL
#define DD_PAGE_SYSCALL (DD_PAGE + 23)
#define DD_PAGE_CODE                                                                                                   \
    {0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca, 0x4d,                                     \
     0x89, 0xc2, 0x4d, 0x89, 0xc8, 0x4c, 0x8b, 0x4c, 0x24, 0x08, 0x0f, 0x05, 0xc3}
#elif defined(__aarch64__)
#define DD_LOADER_BASE 0x5500000000ULL
#define DD_PAGE_CODE                                                                                                   \
    {0xe8, 0x03, 0x00, 0xaa, 0xe0, 0x03, 0x01, 0xaa, 0xe1, 0x03, 0x02, 0xaa, 0xe2, 0x03, 0x03, 0xaa, 0xe3, 0x03,       \
     0x04, 0xaa, 0xe4, 0x03, 0x05, 0xaa, 0xe5, 0x03, 0x06, 0xaa, 0x01, 0x00, 0x00, 0xd4, 0xc0, 0x03, 0x5f, 0xd6}
#else
#error "no loader address for this architecture"
#endif
#define DD_LOADER_TEXT (DD_LOADER_BASE + 0x10000ULL)
#define DD_LOADER_TEXT_SIZE 0x10000ULL
#define DD_LOADER_INFO (DD_LOADER_BASE + 0x40000ULL)

/* Scratch for translated strings: slots in the loader's own memory, never below a guest's stack pointer. A slot is used by one
 * thread between a seccomp stop and its exit stop; the tracer keeps the one bitmap of them for all processes. */
#define DD_SLOTS (DD_LOADER_BASE + 0x50000ULL)
#define DD_SLOT_COUNT 64
#define DD_SLOT_SIZE 10240ULL

/* The session's epoch page (design 3.5), shared by all its processes: a 64-bit counter at its start. Whoever changes where names
 * lead (renames, removes a directory or a link, makes a link) raises it before and after: what was remembered or asked in
 * between counts for nothing. */
#define DD_EPOCH_PAGE (DD_LOADER_BASE + 0x100000ULL)
#define DD_EPOCH_SIZE 0x10000ULL /* whole pages wherever a page is 4, 16 or 64 KiB */

/* What the session's library knows of it (struct dd_session, session_page.h): behind the counter in the same file, mapped for
 * reading. */
#define DD_SESSION (DD_EPOCH_PAGE + DD_EPOCH_SIZE)
#define DD_SESSION_SIZE 0x40000ULL
#define DD_SESSION_MAGIC 0x3173657344445244ULL

/* Entry that the loader adds to the auxiliary vector: its value is the address of struct dd_info. Above all of the kernel's
 * (linux/auxvec.h ends below 64). */
#define AT_DROIDDECK 0x44440001UL

#define DD_INFO_MAGIC 0x31666e6944445244ULL
#define DD_KEY_SIZE 25 /* 24 hex digits and NUL; empty: the fast path is off */
#define DD_POOL_SIZE (7 * 4096) /* six paths at their longest */
#define DD_POOL_LOADER 1        /* where the loader's own host path stands: execve finds it there, and nothing is written */

/* Written by the tracer at PTRACE_EVENT_EXEC, read by the loader at its start, by the tracer afterwards (what is the guest
 * executable of this process) and by the library. Fields named *_at are offsets into pool; 0: none. */
struct dd_info {
    uint64_t magic;
    uint32_t abi_version;
    uint32_t program_at;     /* host path of the file to map */
    uint32_t interpreter_at; /* host path of its ELF interpreter */
    uint32_t exe_at;         /* guest path, for /proc/self/exe */
    uint32_t execfn_at;      /* as execve got it, for AT_EXECFN */
    uint32_t epoch_at;       /* host path of the file behind the epoch page */
    char comm[16];           /* TASK_COMM_LEN (linux/sched.h) */
    char key[DD_KEY_SIZE];
    uint64_t program_device; /* of the file to map, stat(2): what the process runs */
    uint64_t program_inode;
    uint32_t has_ids;        /* emulated, for the auxiliary vector: */
    uint32_t uid, euid, gid, egid;
    uint32_t has_own_filter; /* the process has put a seccomp filter of its own on */
    char pool[DD_POOL_SIZE];
};

/* Environment of the tracer and of the guest (spec A.4). */
#define DD_ENV_FASTPATH "PROOT_FASTPATH"
#define DD_GUEST_KEY "PROOT_FP_KEY"
#define DD_GUEST_TTL "PROOT_FP_TTL_MS"
#define DD_GUEST_OFF "PROOT_FP_OFF"
#define DD_GUEST_STATS "PROOT_FP_STATS"
#define DD_GUEST_LOG "PROOT_FP_LOG"
#define DD_ENV_LOADER "PROOT_LOADER"
#define DD_ENV_TMP_DIR "PROOT_TMP_DIR"
#define DD_ENV_NO_SECCOMP "PROOT_NO_SECCOMP"

#endif
