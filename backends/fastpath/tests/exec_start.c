/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Starts one program through the loader, as the tracer does at PTRACE_EVENT_EXEC, and then lets go of it: the loader
 * alone under test, without path translation.
 *
 *   exec_start LOADER [-k KEY] [-e EPOCH-FILE] [-i INTERPRETER] [-x EXECFN] PROGRAM [ARGUMENT...]
 *
 * Ends as the program does. EXECFN is PROGRAM unless given.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../abi.h"

static size_t used = 1;

static uint32_t put(struct dd_info *info, const char *text) {
    size_t at = used;

    if (!text)
        return 0;
    strcpy(info->pool + at, text);
    used += strlen(text) + 1;
    return (uint32_t)at;
}

static void write_info(pid_t pid, struct dd_info *info) {
    struct iovec here = {info, offsetof(struct dd_info, pool) + used};
    struct iovec there = {(void *)DD_LOADER_INFO, here.iov_len};

    if (process_vm_writev(pid, &here, 1, &there, 1, 0) != (ssize_t)here.iov_len) {
        perror("exec_start: info page");
        exit(2);
    }
}

int main(int argc, char **argv) {
    static struct dd_info info = {.magic = DD_INFO_MAGIC, .abi_version = DD_ABI_VERSION};
    const char *loader = argv[1], *interpreter = NULL, *epoch = NULL, *execfn = NULL;
    int option, status;
    pid_t pid;

    optind = 2;
    while ((option = getopt(argc, argv, "+k:e:i:x:")) != -1) {
        if (option == 'k')
            strncpy(info.key, optarg, sizeof(info.key) - 1);
        else if (option == 'e')
            epoch = optarg;
        else if (option == 'i')
            interpreter = optarg;
        else if (option == 'x')
            execfn = optarg;
        else
            return 2;
    }
    argv += optind;
    execfn = execfn ? execfn : argv[0];
    info.program_at = put(&info, argv[0]);
    info.interpreter_at = put(&info, interpreter);
    info.exe_at = put(&info, argv[0]);
    info.execfn_at = put(&info, execfn);
    info.epoch_at = put(&info, epoch);
    strncpy(info.comm, strrchr(execfn, '/') ? strrchr(execfn, '/') + 1 : execfn, sizeof(info.comm) - 1);
    pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execv(loader, argv);
        perror("exec_start: loader");
        _exit(2);
    }
    waitpid(pid, &status, 0);
    if (!WIFSTOPPED(status))
        return 2;
    write_info(pid, &info);
    ptrace(PTRACE_DETACH, pid, NULL, NULL);
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "exec_start: signal %d\n", WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}
