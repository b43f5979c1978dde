/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The owners of all system calls but the path calls, whose rows stand in path_calls.c.
 *
 * Rules of this file
 *  - Exactly one owner for each number of the architecture; a test walks asm/unistd.h. A number that is in neither
 *    table is refused (ENOSYS): a call of a newer kernel may take a path.
 *  - OWNER_ENOSYS: what goes round path translation (io_uring, handles, the mount API, openat2 whose struct no filter
 *    can read) or tells of the host's mounts. Programs know that older kernels lack it.
 *  - OWNER_EPERM: what a process without privileges gets. ptrace among them: a tracee has one tracer, and that is this
 *    one; a debugger in the guest is told so at once. bpf: its objects are named by host paths. sethostname: it would be
 *    the host's.
 *  - Constants only: the filter answers these rows without a stop.
 */
#include "call_owner.h"

#include <stdbool.h>

#include "numbers.h"
#include "path_calls.h"

#define UNTRACED(name) {__NR_##name, OWNER_UNTRACED}

/* clang-format off */
const struct call_owner call_owners[] = {
    {__NR_openat2, OWNER_ENOSYS},
    {__NR_open_tree, OWNER_ENOSYS},
    {__NR_open_tree_attr, OWNER_ENOSYS},
    {__NR_move_mount, OWNER_ENOSYS},
    {__NR_fsopen, OWNER_ENOSYS},
    {__NR_fsconfig, OWNER_ENOSYS},
    {__NR_fsmount, OWNER_ENOSYS},
    {__NR_fspick, OWNER_ENOSYS},
    {__NR_mount_setattr, OWNER_ENOSYS},
    {__NR_open_by_handle_at, OWNER_ENOSYS},
    {__NR_io_uring_setup, OWNER_ENOSYS},
    {__NR_io_uring_enter, OWNER_ENOSYS},
    {__NR_io_uring_register, OWNER_ENOSYS},
    {__NR_statmount, OWNER_ENOSYS},
    {__NR_listmount, OWNER_ENOSYS},
    {__NR_listns, OWNER_ENOSYS},
    {__NR_lookup_dcookie, OWNER_ENOSYS},
    {__NR_nfsservctl, OWNER_ENOSYS},
    {__NR_mount, OWNER_EPERM},
    {__NR_umount2, OWNER_EPERM},
    {__NR_pivot_root, OWNER_EPERM},
    {__NR_ptrace, OWNER_EPERM},
    {__NR_setns, OWNER_EPERM},
    {__NR_bpf, OWNER_EPERM},
    {__NR_sethostname, OWNER_EPERM},
    {__NR_setdomainname, OWNER_EPERM},
    {__NR_socket, OWNER_CONDITIONAL},
    {__NR_sendto, OWNER_CONDITIONAL},
    {__NR_recvfrom, OWNER_CONDITIONAL},
    {__NR_accept, OWNER_CONDITIONAL},
    {__NR_accept4, OWNER_CONDITIONAL},
    {__NR_prctl, OWNER_CONDITIONAL},
    {__NR_seccomp, OWNER_CONDITIONAL},
    {__NR_clone, OWNER_CONDITIONAL},
    {__NR_unshare, OWNER_CONDITIONAL},
    {__NR_getsockopt, OWNER_CONDITIONAL},
    {__NR_readlinkat, OWNER_READLINK},
    {__NR_getcwd, OWNER_GETCWD},
    {__NR_chroot, OWNER_CHROOT},
    {__NR_execve, OWNER_EXECVE},
    {__NR_execveat, OWNER_EXECVEAT},
    {__NR_bind, OWNER_SOCKET_ADDRESS},
    {__NR_connect, OWNER_SOCKET_ADDRESS},
    {__NR_getsockname, OWNER_SOCKET_NAME},
    {__NR_getpeername, OWNER_SOCKET_NAME},
    {__NR_sendmsg, OWNER_MESSAGE},
    {__NR_sendmmsg, OWNER_MESSAGE},
    {__NR_recvmsg, OWNER_MESSAGE},
    {__NR_recvmmsg, OWNER_MESSAGE},
    {__NR_setuid, OWNER_CREDENTIALS},
    {__NR_setgid, OWNER_CREDENTIALS},
    {__NR_setreuid, OWNER_CREDENTIALS},
    {__NR_setregid, OWNER_CREDENTIALS},
    {__NR_setresuid, OWNER_CREDENTIALS},
    {__NR_setresgid, OWNER_CREDENTIALS},
    {__NR_setfsuid, OWNER_CREDENTIALS},
    {__NR_setfsgid, OWNER_CREDENTIALS},
    {__NR_setgroups, OWNER_CREDENTIALS},
    {__NR_capset, OWNER_CREDENTIALS},
    {__NR_landlock_restrict_self, OWNER_SANDBOX},
    {__NR_getuid, OWNER_IDS},
    {__NR_geteuid, OWNER_IDS},
    {__NR_getgid, OWNER_IDS},
    {__NR_getegid, OWNER_IDS},
    {__NR_getresuid, OWNER_IDS},
    {__NR_getresgid, OWNER_IDS},
    {__NR_getgroups, OWNER_IDS},
    {__NR_fstat, OWNER_IDS},
    {__NR_fchown, OWNER_IDS},
    {__NR_uname, OWNER_UTSNAME},
    {__NR_getdents64, OWNER_LISTING},

    UNTRACED(add_key), UNTRACED(adjtimex), UNTRACED(brk), UNTRACED(cachestat), UNTRACED(capget),
    UNTRACED(clock_adjtime), UNTRACED(clock_getres), UNTRACED(clock_gettime), UNTRACED(clock_nanosleep),
    UNTRACED(clock_settime), UNTRACED(clone3), UNTRACED(close), UNTRACED(close_range), UNTRACED(copy_file_range),
    UNTRACED(delete_module), UNTRACED(dup), UNTRACED(dup3), UNTRACED(epoll_create1), UNTRACED(epoll_ctl),
    UNTRACED(epoll_pwait), UNTRACED(epoll_pwait2), UNTRACED(eventfd2), UNTRACED(exit), UNTRACED(exit_group),
    UNTRACED(fadvise64), UNTRACED(fallocate), UNTRACED(fanotify_init), UNTRACED(fchdir), UNTRACED(fchmod),
    UNTRACED(fcntl), UNTRACED(fdatasync), UNTRACED(fgetxattr), UNTRACED(finit_module), UNTRACED(flistxattr),
    UNTRACED(flock), UNTRACED(fremovexattr), UNTRACED(fsetxattr), UNTRACED(fstatfs), UNTRACED(fsync),
    UNTRACED(ftruncate), UNTRACED(futex), UNTRACED(futex_requeue), UNTRACED(futex_wait), UNTRACED(futex_waitv),
    UNTRACED(futex_wake), UNTRACED(get_mempolicy), UNTRACED(get_robust_list), UNTRACED(getcpu),
    UNTRACED(getitimer), UNTRACED(getpgid), UNTRACED(getpid), UNTRACED(getppid), UNTRACED(getpriority),
    UNTRACED(getrandom), UNTRACED(getrlimit), UNTRACED(getrusage), UNTRACED(getsid), UNTRACED(gettid),
    UNTRACED(gettimeofday), UNTRACED(init_module), UNTRACED(inotify_init1), UNTRACED(inotify_rm_watch),
    UNTRACED(io_cancel), UNTRACED(io_destroy), UNTRACED(io_getevents), UNTRACED(io_pgetevents), UNTRACED(io_setup),
    UNTRACED(io_submit), UNTRACED(ioctl), UNTRACED(ioprio_get), UNTRACED(ioprio_set), UNTRACED(kcmp),
    UNTRACED(kexec_file_load), UNTRACED(kexec_load), UNTRACED(keyctl), UNTRACED(kill), UNTRACED(landlock_add_rule),
    UNTRACED(landlock_create_ruleset), UNTRACED(listen), UNTRACED(lseek), UNTRACED(lsm_get_self_attr),
    UNTRACED(lsm_list_modules), UNTRACED(lsm_set_self_attr), UNTRACED(madvise), UNTRACED(map_shadow_stack),
    UNTRACED(mbind), UNTRACED(membarrier), UNTRACED(memfd_create), UNTRACED(memfd_secret), UNTRACED(migrate_pages),
    UNTRACED(mincore), UNTRACED(mlock), UNTRACED(mlock2), UNTRACED(mlockall), UNTRACED(mmap), UNTRACED(move_pages),
    UNTRACED(mprotect), UNTRACED(mq_getsetattr), UNTRACED(mq_notify), UNTRACED(mq_open), UNTRACED(mq_timedreceive),
    UNTRACED(mq_timedsend), UNTRACED(mq_unlink), UNTRACED(mremap), UNTRACED(mseal), UNTRACED(msgctl),
    UNTRACED(msgget), UNTRACED(msgrcv), UNTRACED(msgsnd), UNTRACED(msync), UNTRACED(munlock), UNTRACED(munlockall),
    UNTRACED(munmap), UNTRACED(nanosleep), UNTRACED(perf_event_open), UNTRACED(personality), UNTRACED(pidfd_getfd),
    UNTRACED(pidfd_open), UNTRACED(pidfd_send_signal), UNTRACED(pipe2), UNTRACED(pkey_alloc), UNTRACED(pkey_free),
    UNTRACED(pkey_mprotect), UNTRACED(ppoll), UNTRACED(pread64), UNTRACED(preadv), UNTRACED(preadv2),
    UNTRACED(prlimit64), UNTRACED(process_madvise), UNTRACED(process_mrelease), UNTRACED(process_vm_readv),
    UNTRACED(process_vm_writev), UNTRACED(pselect6), UNTRACED(pwrite64), UNTRACED(pwritev), UNTRACED(pwritev2),
    UNTRACED(quotactl_fd), UNTRACED(read), UNTRACED(readahead), UNTRACED(readv), UNTRACED(reboot),
    UNTRACED(remap_file_pages), UNTRACED(request_key), UNTRACED(restart_syscall), UNTRACED(rseq),
    UNTRACED(rt_sigaction), UNTRACED(rt_sigpending), UNTRACED(rt_sigprocmask), UNTRACED(rt_sigqueueinfo),
    UNTRACED(rt_sigreturn), UNTRACED(rt_sigsuspend), UNTRACED(rt_sigtimedwait), UNTRACED(rt_tgsigqueueinfo),
    UNTRACED(sched_get_priority_max), UNTRACED(sched_get_priority_min), UNTRACED(sched_getaffinity),
    UNTRACED(sched_getattr), UNTRACED(sched_getparam), UNTRACED(sched_getscheduler), UNTRACED(sched_rr_get_interval),
    UNTRACED(sched_setaffinity), UNTRACED(sched_setattr), UNTRACED(sched_setparam), UNTRACED(sched_setscheduler),
    UNTRACED(sched_yield), UNTRACED(semctl), UNTRACED(semget), UNTRACED(semop), UNTRACED(semtimedop),
    UNTRACED(sendfile), UNTRACED(set_mempolicy),
    UNTRACED(set_mempolicy_home_node), UNTRACED(set_robust_list), UNTRACED(set_tid_address),
    UNTRACED(setitimer), UNTRACED(setpgid), UNTRACED(setpriority), UNTRACED(setrlimit),
    UNTRACED(setsid), UNTRACED(setsockopt), UNTRACED(settimeofday), UNTRACED(shmat), UNTRACED(shmctl),
    UNTRACED(shmdt), UNTRACED(shmget), UNTRACED(shutdown), UNTRACED(sigaltstack), UNTRACED(signalfd4),
    UNTRACED(socketpair), UNTRACED(splice), UNTRACED(sync), UNTRACED(sync_file_range),
    UNTRACED(syncfs), UNTRACED(sysinfo), UNTRACED(syslog), UNTRACED(tee), UNTRACED(tgkill), UNTRACED(timer_create),
    UNTRACED(timer_delete), UNTRACED(timer_getoverrun), UNTRACED(timer_gettime), UNTRACED(timer_settime),
    UNTRACED(timerfd_create), UNTRACED(timerfd_gettime), UNTRACED(timerfd_settime), UNTRACED(times), UNTRACED(tkill),
    UNTRACED(umask), UNTRACED(userfaultfd), UNTRACED(vhangup), UNTRACED(vmsplice), UNTRACED(wait4), UNTRACED(waitid),
    UNTRACED(write), UNTRACED(writev),

#ifdef __x86_64__ /* the calls that newer architectures lack */
    {__NR_uselib, OWNER_ENOSYS},
    {__NR__sysctl, OWNER_ENOSYS},
    {__NR_sysfs, OWNER_ENOSYS},
    {__NR_readlink, OWNER_READLINK},
    {__NR_getdents, OWNER_LISTING},

    UNTRACED(afs_syscall), UNTRACED(alarm), UNTRACED(arch_prctl), UNTRACED(create_module), UNTRACED(dup2),
    UNTRACED(epoll_create), UNTRACED(epoll_ctl_old), UNTRACED(epoll_wait), UNTRACED(epoll_wait_old),
    UNTRACED(eventfd), UNTRACED(fork), UNTRACED(get_kernel_syms), UNTRACED(get_thread_area),
    UNTRACED(getpgrp), UNTRACED(getpmsg), UNTRACED(inotify_init), UNTRACED(ioperm), UNTRACED(iopl),
    UNTRACED(modify_ldt), UNTRACED(pause), UNTRACED(pipe), UNTRACED(poll), UNTRACED(putpmsg), UNTRACED(query_module),
    UNTRACED(security), UNTRACED(select), UNTRACED(set_thread_area), UNTRACED(signalfd), UNTRACED(time),
    UNTRACED(tuxcall), UNTRACED(uprobe), UNTRACED(uretprobe), UNTRACED(ustat), UNTRACED(vfork), UNTRACED(vserver),
#endif
};
/* clang-format on */

const size_t call_owner_count = sizeof(call_owners) / sizeof(call_owners[0]);

struct owned {
    enum owner owner;
    const struct path_call *row;
};

static struct owned index_of[CALL_NUMBERS];
static bool indexed;

static void build_index(void) {
    for (size_t n = 0; n < call_owner_count; n++)
        index_of[call_owners[n].number].owner = call_owners[n].owner;
    for (size_t n = 0; n < path_call_count; n++)
        index_of[path_calls[n].number] = (struct owned){OWNER_PATH, &path_calls[n]};
    indexed = true;
}

enum owner call_owner(long number, const struct path_call **row) {
    if (!indexed)
        build_index();
    if (number < 0 || number >= CALL_NUMBERS)
        return OWNER_REFUSED;
    if (row != NULL)
        *row = index_of[number].row;
    return index_of[number].owner;
}
