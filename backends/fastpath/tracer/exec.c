/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * execve and execveat: the kernel execs the loader, which maps what the guest asked for.
 *
 * Rules of this file
 *  - The entry stop gives the answer of every failure that the kernel knows before its point of no return, in its
 *    order: the path, the file, the argument vector, the format, each interpreter in turn (fs/exec.c,
 *    fs/binfmt_script.c, binfmt_elf.c).
 *  - What is left to the kernel is an execve of the loader with the caller's own vectors: counting and copying them,
 *    ending the other threads, closing descriptors, credentials, /proc/PID/cmdline and environ are its own.
 *  - setuid and setgid bits have no effect: all guest processes run under no_new_privs, where the kernel ignores them
 *    too.
 *  - Not done: binfmt_misc of the host; 32-bit programs (-ENOEXEC); the byte-exact limit of -E2BIG, for the loader's
 *    name lies on the new stack in place of the program's. The loader has to open what the kernel only executes, so
 *    -EACCES is the answer for files that may be executed but not read; and, where the tracer is root and the caller
 *    has become another user, for those that no path leads to (memfd, removed files).
 */
#define _GNU_SOURCE
#include "exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "call.h"
#include "elf_image.h"
#include "exec_arguments.h"
#include "exec_file.h"
#include "exec_info.h"
#include "exec_interpreter.h"
#include "identity.h"
#include "memory.h"
#include "own_filter.h"
#include "tracer.h"

#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000 /* linux/fcntl.h, since 6.14; that header and fcntl.h exclude each other */
#endif

/* One execve as the caller asks for it. */
struct request {
    char path[PATH_MAX];
    int dirfd_argument; /* -1: none was given */
    int flags;
    uint64_t argv, environment;
    struct exec_head head; /* execfn, and the scripts on the way */
};

static bool names_descriptor(const struct request *request, const struct call *call) {
    return request->dirfd_argument >= 0 && request->path[0] != '/' &&
           (int)call_argument(call, request->dirfd_argument) != AT_FDCWD;
}

/* alloc_bprm: bprm->filename. */
static void name_program(struct request *request, const struct call *call) {
    char *execfn = request->head.execfn;
    int descriptor;

    if (!names_descriptor(request, call)) {
        strcpy(execfn, request->path);
        return;
    }
    descriptor = (int)call_argument(call, request->dirfd_argument);
    snprintf(execfn, sizeof(request->head.execfn), request->path[0] ? "/dev/fd/%d/%s" : "/dev/fd/%d", descriptor,
             request->path);
}

/* 0 or -errno. */
static int read_request(const struct call *call, bool at, struct request *request) {
    int length =
        memory_read_string(call_tid(call), call_argument(call, at ? 1 : 0), request->path, sizeof(request->path));

    if (length < 0)
        return length;
    request->dirfd_argument = at ? 0 : -1;
    request->argv = call_argument(call, at ? 2 : 1);
    request->environment = call_argument(call, at ? 3 : 2);
    request->flags = at ? (int)call_argument(call, 4) : 0;
    request->head.count = 0;
    if (!request->path[0] && !(request->flags & AT_EMPTY_PATH))
        return -ENOENT;
    if (request->flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_EXECVE_CHECK))
        return -EINVAL;
    name_program(request, call);
    return 0;
}

static int open_program(const struct call *call, const struct request *request, struct exec_file *file) {
    enum dd_mode mode = request->flags & AT_SYMLINK_NOFOLLOW ? DD_NOFOLLOW : DD_FOLLOW;

    if (!request->path[0])
        return exec_file_open_descriptor(call, (int)call_argument(call, 0), file);
    return exec_file_open(call, request->dirfd_argument, request->path, mode, file);
}

/* open_exec(name): what a script or PT_INTERP names. The empty name is the working directory there, and so no file. */
static int open_interpreter(const struct call *call, const char *name, struct exec_file *file) {
    return name[0] ? exec_file_open(call, -1, name, DD_FOLLOW, file) : -EACCES;
}

/* BINPRM_FLAGS_PATH_INACCESSIBLE: a script that only a descriptor leads to which execve will close. */
static bool is_closed_on_exec(const struct call *call, int descriptor) {
    char name[64], text[256];
    const char *flags;
    ssize_t length;
    int file;

    snprintf(name, sizeof(name), "/proc/%d/fdinfo/%d", (int)call_tid(call), descriptor);
    file = open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    length = read(file, text, sizeof(text) - 1);
    close(file);
    text[length < 0 ? 0 : length] = '\0';
    flags = strstr(text, "flags:");
    return flags && (strtoul(flags + strlen("flags:"), NULL, 8) & O_CLOEXEC);
}

/* exec_binprm: from script to interpreter until it is no script. `file` is the program, then each interpreter. */
static int follow_scripts(const struct call *call, struct request *request, struct exec_file *file) {
    for (;;) {
        struct shebang *script = &request->head.scripts[request->head.count];
        int answer = shebang_parse(file->head, script);

        if (answer <= 0)
            return answer;
        if (names_descriptor(request, call) && is_closed_on_exec(call, (int)call_argument(call, 0)))
            return -ENOENT;
        exec_file_close(file);
        answer = open_interpreter(call, script->interpreter, file);
        if (answer < 0)
            return answer;
        if (++request->head.count > SHEBANG_DEPTH)
            return -ELOOP;
    }
}

/* load_elf_binary, up to the point of no return. *has_interpreter: `interpreter` is known, and may be open. */
static int open_elf(const struct call *call, const struct exec_file *program, struct exec_file *interpreter,
                    bool *has_interpreter) {
    struct elf_source source = exec_file_source(program);
    struct elf_program image;
    int error = elf_read_program(&source, &image);

    *has_interpreter = false;
    if (error < 0)
        return error;
    if (program->by_descriptor && program->by_other)
        return -EACCES; /* its loader could not open it */
    if (!image.interpreted)
        return 0;
    *has_interpreter = exec_interpreter_remembered(call, image.interpreter, interpreter);
    if (*has_interpreter)
        return 0;
    error = open_interpreter(call, image.interpreter, interpreter);
    if (error < 0)
        return error;
    *has_interpreter = true;
    source = exec_file_source(interpreter);
    error = elf_check_interpreter(&source);
    if (error == 0)
        exec_interpreter_remember(call, image.interpreter, interpreter);
    return error;
}

static const char *last_component(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* begin_new_exec: since 6.14 a program that only its descriptor names is called by its file's name. */
static bool kernel_names_files(void) {
    struct utsname kernel;
    unsigned major = 0, minor = 0;

    if (uname(&kernel) < 0 || sscanf(kernel.release, "%u.%u", &major, &minor) != 2)
        return false;
    return major > 6 || (major == 6 && minor >= 14);
}

static void name_process(const struct request *request, const struct exec_file *program, char comm[16]) {
    const char *name = last_component(request->head.execfn);
    size_t length = strlen(name);

    if (!request->path[0] && kernel_names_files()) {
        name = last_component(program->guest);
        length = program->name_length;
    }
    if (length > 15)
        length = 15;
    memcpy(comm, name, length);
    comm[length] = '\0';
}

/* The call becomes execve(loader, argv, environment). */
static int exec_loader(struct call *call, const char *loader, const struct request *request) {
    const struct replacement path = {.argument = 0, .bytes = loader, .size = strlen(loader) + 1};
    int error = 0;

    if (request->head.count)
        error = exec_arguments_replace(call, loader, &request->head, request->argv);
    else if (call->tracer->loaded)
        call_set_argument(call, 0, DD_LOADER_INFO + offsetof(struct dd_info, pool) + DD_POOL_LOADER);
    else
        error = call_replace(call, &path, 1);
    if (error < 0 || request->dirfd_argument < 0)
        return error;
    call_set_number(call, SYS_execve);
    if (!request->head.count)
        call_set_argument(call, 1, request->argv);
    call_set_argument(call, 2, request->environment);
    return 0;
}

/* From the open program on; closes what it opens. */
static int prepare(struct tracer *tracer, struct call *call, struct request *request, struct exec_file *program) {
    struct exec_file interpreter; /* large: not cleared as a whole */
    bool has_interpreter = false;
    char comm[16];
    int error = follow_scripts(call, request, program);

    interpreter.descriptor = -1;
    if (error == 0)
        error = open_elf(call, program, &interpreter, &has_interpreter);
    if (error < 0) {
        int vectors = exec_arguments_check(call, request->argv, request->environment);
        error = vectors < 0 ? vectors : error;
    } else {
        name_process(request, program, comm);
        call->tracee->exec =
            exec_info_make(tracer, program, has_interpreter ? &interpreter : NULL, request->head.execfn, comm);
        if (call->tracee->exec)
            identity_tell(call->tracee, &call->tracee->exec->info);
        if (call->tracee->exec && tracer->key[0] != '\0' && tracer->loaded)
            call->tracee->exec->info.has_own_filter = own_filter_is_on(call_tid(call));
        error = call->tracee->exec ? exec_loader(call, tracer->loader, request) : -ENAMETOOLONG;
    }
    if (interpreter.descriptor >= 0)
        exec_file_close(&interpreter);
    return error;
}

/* AT_EXECVE_CHECK: nothing is executed; the kernel looks at the file where it lies on the host. */
static int check_only(struct call *call, const struct request *request, struct exec_file *program) {
    char name[64];
    const char *path = program->host;

    if (program->by_descriptor) {
        snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)getpid(), program->descriptor);
        path = name;
        call->tracee->kept[call->tracee->kept_count++] = program->descriptor;
        program->descriptor = -1;
    }
    const struct replacement replacements[] = {
        {.argument = 0, .value = (uint64_t)AT_FDCWD},
        {.argument = 1, .bytes = path, .size = strlen(path) + 1},
        {.argument = 4, .value = (uint64_t)(request->flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))},
    };
    return call_replace(call, replacements, 3);
}

void exec_enter(struct tracer *tracer, struct call *call, bool at) {
    struct request request;
    struct exec_file program; /* large: not cleared as a whole */
    int error = read_request(call, at, &request);

    program.descriptor = -1;
    exec_forget(call->tracee);
    if (error == 0)
        error = open_program(call, &request, &program);
    if (error == 0)
        error = request.flags & AT_EXECVE_CHECK ? check_only(call, &request, &program)
                                                : prepare(tracer, call, &request, &program);
    if (program.descriptor >= 0)
        exec_file_close(&program);
    if (error == 0)
        return;
    exec_forget(call->tracee);
    call_answer(call, error);
}

void exec_done(struct tracer *tracer, struct tracee *tracee, pid_t former_tid) {
    (void)tracer;
    (void)former_tid;
    if (!tracee->exec) {
        fprintf(stderr, "droiddeck-tracer: process %d was replaced past the tracer: it is ended\n", (int)tracee->tid);
        kill(tracee->tid, SIGKILL);
        return;
    }
    if (exec_info_write(tracee->exec, tracee->tid) < 0) {
        kill(tracee->tid, SIGKILL); /* somebody does that already, or there is no memory for a page */
        return;
    }
    if (tracee->exec->kept[0] < 0 && tracee->exec->kept[1] < 0)
        exec_forget(tracee);
}

void exec_forget(struct tracee *tracee) {
    if (!tracee->exec)
        return;
    exec_info_free(tracee->exec);
    tracee->exec = NULL;
}
