/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A file that execve opens (fs/exec.c, do_open_execat).
 *
 * Rules of this file
 *  - do_open_execat looks at type, permission, noexec mounts and writers, in this order. Of a file whose leases the
 *    tracer may take, three cheap calls tell all of that. Of any other the kernel itself is asked: by an execve of the
 *    tracer's own, whose argument vector cannot be read. The kernel opens the file first and counts arguments then, so
 *    EFAULT means that the file is good, and the tracer goes on in any case.
 *  - All is asked with the caller's rights (exec_rights.h).
 *  - A file that is reached through a descriptor may have no path that leads to it (a memfd, a removed file, one
 *    outside of the view, one too deep): then the tracer's descriptor is kept and the loader opens that.
 */
#define _GNU_SOURCE
#include "exec_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec_rights.h"
#include "resolver/sys.h"
#include "tracer.h"

static const char removed_suffix[] = " (deleted)"; /* d_path, fs/d_path.c */

/* 0 or -errno: would the kernel open this host path for execve? */
static int ask_kernel(const char *path) {
    char *const *unreadable = (char *const *)-PATH_MAX; /* the kernel's half of the address space */

    execve(path, unreadable, NULL);
    return errno == EFAULT ? 0 : -errno;
}

/* A lease for reading is granted to nobody while the file is open for writing (fcntl(2), F_SETLEASE), which is what
 * execve asks too. */
bool exec_file_has_no_writer(int descriptor) {
    return fcntl(descriptor, F_SETLEASE, F_RDLCK) == 0 && fcntl(descriptor, F_SETLEASE, F_UNLCK) == 0;
}

/* faccessat(2) asks with the real ids, which a borrower of rights does not change. A raw call: glibc's makes
 * faccessat2, which an Android app may not. */
static bool may_execute(const char *path, bool borrowed) {
    return !borrowed && syscall(SYS_faccessat, AT_FDCWD, path, X_OK) == 0;
}

static int open_permitted(const char *path, enum dd_mode mode, bool borrowed) {
    struct stat status;
    bool permitted;
    int descriptor, error;

    if (fstatat(AT_FDCWD, path, &status, mode == DD_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return S_ISLNK(status.st_mode) ? -ELOOP : -EACCES;
    permitted = may_execute(path, borrowed);
    error = permitted ? 0 : ask_kernel(path);
    if (error < 0)
        return error;
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to wait for what took its place since */
    if (descriptor < 0)
        return -errno;
    error = permitted && !exec_file_has_no_writer(descriptor) ? ask_kernel(path) : 0;
    if (error == 0)
        return descriptor;
    close(descriptor);
    return error;
}

static int read_head(struct exec_file *file) {
    ssize_t length = pread(file->descriptor, file->head, sizeof(file->head), 0);

    if (length < 0)
        return -errno;
    file->head_size = (size_t)length;
    memset(file->head + length, 0, sizeof(file->head) - (size_t)length);
    return 0;
}

static long read_source(const struct elf_source *source, void *buffer, size_t size, uint64_t offset) {
    const struct exec_file *file = source->context;
    ssize_t length;

    if (offset <= file->head_size && size <= file->head_size - offset) {
        memcpy(buffer, file->head + offset, size);
        return (long)size;
    }
    if (offset > INT64_MAX)
        return -EINVAL;
    length = pread(file->descriptor, buffer, size, (off_t)offset);
    return length < 0 ? -errno : length;
}

struct elf_source exec_file_source(const struct exec_file *file) {
    return (struct elf_source){.read = read_source, .context = file};
}

static int open_path(const char *path, enum dd_mode mode, struct exec_file *file) {
    int error;

    file->descriptor = open_permitted(path, mode, file->by_other);
    if (file->descriptor < 0)
        return file->descriptor;
    error = read_head(file);
    if (error < 0)
        exec_file_close(file);
    return error;
}

/* Beyond PATH_MAX: through a descriptor of a directory on the way. */
static int open_long_path(const char *path, enum dd_mode mode, struct exec_file *file) {
    char name[2 * PATH_MAX];
    const char *rest;
    int error, parent = dd_host_parent(path, &rest);

    if (parent < 0)
        return parent;
    snprintf(name, sizeof(name), "/proc/self/fd/%d/%s", parent, rest);
    error = open_path(name, mode, file);
    close(parent);
    return error;
}

/* A link of procfs. The caller may always follow its own; with the caller's rights the tracer may follow the tracer's
 * own only, so it opens the file that way (O_PATH: as it is) before it borrows them. */
static int open_link(const struct call *call, const char *link, enum dd_mode mode, struct exec_file *file) {
    struct rights own;
    char name[64];
    int error, handle;

    if (mode == DD_NOFOLLOW)
        return -ELOOP;
    handle = open(link, O_PATH | O_CLOEXEC);
    if (handle < 0)
        return -errno;
    snprintf(name, sizeof(name), "/proc/self/fd/%d", handle);
    rights_borrow(call->tracee, &own);
    file->by_other = own.borrowed;
    error = open_path(name, DD_FOLLOW, file);
    rights_return(&own);
    close(handle);
    return error;
}

static const char *last_component(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool leads_to(const char *path, int descriptor) {
    struct stat there, here;

    return stat(path, &there) == 0 && fstat(descriptor, &here) == 0 && there.st_dev == here.st_dev &&
           there.st_ino == here.st_ino;
}

/* Names of an open file that was reached through a descriptor, from what procfs says about it. */
static void name_open_file(const struct call *call, struct exec_file *file) {
    const size_t suffix = sizeof(removed_suffix) - 1;
    char link[64];
    ssize_t length;
    size_t known;
    int guest_length;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", file->descriptor);
    length = readlink(link, file->host, sizeof(file->host) - 1);
    file->host[length < 0 ? 0 : length] = '\0';
    file->by_descriptor = length < 0 || length >= PATH_MAX || !leads_to(file->host, file->descriptor);
    known = strlen(file->host);
    if (file->by_descriptor && known > suffix && strcmp(file->host + known - suffix, removed_suffix) == 0)
        known -= suffix;
    guest_length = dd_guest_name(&call->tracer->view, file->host, known, file->guest);
    if (guest_length < 0)
        memcpy(file->guest, file->host, (size_t)(guest_length = (int)known));
    file->guest[guest_length] = '\0';
    file->name_length = strlen(last_component(file->guest));
    strcpy(file->guest + guest_length, file->host + known);
}

/* Looks the path up and opens what is there, both with the caller's rights. */
static int open_named(const struct call *call, int dirfd_argument, const char *path, enum dd_mode mode,
                      struct dd_result *found, struct exec_file *file) {
    struct rights own;
    int error;

    rights_borrow(call->tracee, &own);
    file->by_other = own.borrowed;
    error = call_resolve(call, dirfd_argument, path, mode, found);
    if (error == 0 && !found->magic)
        error = found->host_length < PATH_MAX ? open_path(found->host, mode, file)
                                              : open_long_path(found->host, mode, file);
    rights_return(&own);
    return error;
}

int exec_file_open(const struct call *call, int dirfd_argument, const char *path, enum dd_mode mode,
                   struct exec_file *file) {
    struct dd_result found;
    int error = open_named(call, dirfd_argument, path, mode, &found, file);

    if (error == 0 && found.magic)
        error = open_link(call, found.host, mode, file);
    if (error < 0)
        return error;
    if (found.magic || found.outside) {
        name_open_file(call, file);
        return 0;
    }
    file->by_descriptor = found.host_length >= PATH_MAX;
    memcpy(file->host, found.host, found.host_length + 1);
    memcpy(file->guest, found.guest, found.guest_length + 1);
    file->name_length = strlen(last_component(file->guest));
    return 0;
}

int exec_file_open_descriptor(const struct call *call, int descriptor, struct exec_file *file) {
    char name[64];
    int error;

    call_descriptor_name(call, descriptor, name, sizeof(name));
    error = open_link(call, name, DD_FOLLOW, file);
    if (error == -ENOENT)
        return -EBADF; /* no such link in procfs */
    if (error == 0)
        name_open_file(call, file);
    return error;
}

void exec_file_close(struct exec_file *file) {
    close(file->descriptor);
    file->descriptor = -1;
}
