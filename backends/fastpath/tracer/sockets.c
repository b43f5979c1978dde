/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Names of Unix sockets: guest paths go in, host paths come back.
 *
 * Rules of this file
 *  - Only a named AF_UNIX address is a path; abstract and unnamed ones and other families pass unread.
 *  - sun_path holds 107 bytes. A longer host path goes through a descriptor of the tracer's: of the directory where the
 *    socket is to be made, held on since the kernel keeps that name (until many others were needed); of the socket
 *    itself where one connects, held until the call ends. If the last component alone is too long beside that, the socket is made under
 *    a short name and renamed.
 *  - The kernel answers with the text that bind was given. socket_names.c knows it; a name from outside of the session
 *    is shown as the guest path that leads there, also one that another session's tracer made short.
 *  - sendmsg and its kin are datagrams.c's.
 */
#define _GNU_SOURCE
#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h> /* RENAME_NOREPLACE */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "call.h"
#include "host_path.h"
#include "memory.h"
#include "numbers.h"
#include "slots.h"
#include "socket_names.h"
#include "tracer.h"
#include "translate.h"

enum {
    NAME_AT = offsetof(struct sockaddr_un, sun_path),
    NAME_SIZE = SOCKET_NAME_SIZE,
    MOST_DIRECTORIES = 128, /* in which sockets with long names are made; each costs a descriptor */
};

static const char short_prefix[] = ".droiddeck-";

static struct {
    char *path;
    int descriptor;
} directories[MOST_DIRECTORIES];

static size_t directory_count; /* of all that were ever held */

/* ---- long names -------------------------------------------------------------------------------------------------- */

static int open_host(const char *host, int flags) {
    int directory;
    const char *path;

    int error = host_path_open(host, &directory, &path);
    if (error != 0)
        return error;
    int descriptor = openat(directory, path, O_PATH | O_CLOEXEC | flags);
    if (descriptor < 0)
        descriptor = -errno;
    host_path_close(directory);
    return descriptor;
}

/* Not removed, moved or replaced by another of its name. */
static bool still_leads_to(const char *host, int descriptor) {
    struct stat held, found;
    int directory;
    const char *path;

    if (host_path_open(host, &directory, &path) != 0)
        return false;
    bool leads = fstatat(directory, path, &found, 0) == 0 && fstat(descriptor, &held) == 0 &&
                 found.st_dev == held.st_dev && found.st_ino == held.st_ino;
    host_path_close(directory);
    return leads;
}

static int keep_directory(const char *host) {
    size_t held = directory_count < MOST_DIRECTORIES ? directory_count : MOST_DIRECTORIES;

    for (size_t n = 0; n < held; n++)
        if (strcmp(directories[n].path, host) == 0 && still_leads_to(host, directories[n].descriptor))
            return directories[n].descriptor;
    int descriptor = open_host(host, O_DIRECTORY);
    char *copy = descriptor < 0 ? NULL : strdup(host);
    if (descriptor < 0 || copy == NULL)
        return descriptor < 0 ? descriptor : -ENOMEM;
    size_t place = directory_count++ % MOST_DIRECTORIES;
    if (held == MOST_DIRECTORIES) {
        free(directories[place].path);
        close(directories[place].descriptor);
    }
    directories[place].path = copy;
    directories[place].descriptor = descriptor;
    return descriptor;
}

/* A name for a socket that is to be made at `host`: through its directory, and if need be under another last component.
 * */
static int short_name_to_make(char *host, char name[NAME_SIZE]) {
    static unsigned made;
    char *slash = strrchr(host, '/');
    struct stat status;

    *slash = '\0';
    int descriptor = keep_directory(host);
    if (descriptor < 0)
        return descriptor;
    int length = snprintf(name, NAME_SIZE, "/proc/%d/fd/%d/%s", (int)getpid(), descriptor, slash + 1);
    if (length < NAME_SIZE)
        return 0;
    if (fstatat(descriptor, slash + 1, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return -EADDRINUSE;
    snprintf(name, NAME_SIZE, "/proc/%d/fd/%d/%s%u", (int)getpid(), descriptor, short_prefix, made++);
    return 0;
}

/* A name for a socket that is there. */
static int short_name_of(struct tracee *tracee, const char *host, char name[NAME_SIZE]) {
    int descriptor = open_host(host, 0);

    if (descriptor < 0)
        return descriptor;
    if (!tracee_keep(tracee, descriptor)) {
        close(descriptor);
        return -ENAMETOOLONG;
    }
    snprintf(name, NAME_SIZE, "/proc/%d/fd/%d", (int)getpid(), descriptor);
    return 0;
}

static int short_name(struct call *call, char *host, bool makes, char name[NAME_SIZE]) {
    if (strlen(host) >= NAME_SIZE)
        return makes ? short_name_to_make(host, name) : short_name_of(call->tracee, host, name);
    memcpy(name, host, strlen(host) + 1);
    return 0;
}

/* ---- there ------------------------------------------------------------------------------------------------------- */

/* The address that an argument of the caller's leads to. False: it is no name. */
static bool read_name(const struct call *call, uint64_t at, size_t length, char name[NAME_SIZE + 1]) {
    struct sockaddr_un address = {0};

    if (length <= NAME_AT || length > sizeof(address) || memory_read(call_tid(call), at, &address, length) != 0)
        return false;
    if (address.sun_family != AF_UNIX || address.sun_path[0] == '\0')
        return false;
    memcpy(name, address.sun_path, NAME_SIZE);
    name[NAME_SIZE] = '\0';
    return true;
}

/* Give the socket its own name, which was too long for an address. */
static int rename_made(const char *kernel_name, const char *given) {
    const char *slash = strrchr(kernel_name, '/');
    const char *last = strrchr(given, '/');
    int descriptor;

    if (strncmp(slash + 1, short_prefix, strlen(short_prefix)) != 0)
        return 0;
    if (sscanf(kernel_name, "/proc/%*d/fd/%d/", &descriptor) != 1)
        return -EINVAL;
    last = last != NULL ? last + 1 : given;
    /* musl has a wrapper since 1.2.6 only. */
    if (syscall(SYS_renameat2, descriptor, slash + 1, descriptor, last, RENAME_NOREPLACE) == 0)
        return 0;
    unlinkat(descriptor, slash + 1, 0);
    return -EADDRINUSE; /* somebody was faster */
}

static void remember_name(struct call *call) {
    char kernel_name[NAME_SIZE + 1], given[NAME_SIZE + 1];
    uint64_t scratch = slots_address(call->tracee);

    if (call->registers.result != 0)
        return;
    if (!read_name(call, scratch, sizeof(struct sockaddr_un), kernel_name) ||
        !read_name(call, call_argument(call, 1), (size_t)call_argument(call, 2), given))
        return;
    int error = rename_made(kernel_name, given);
    if (error != 0)
        call->registers.result = error;
    else
        socket_names_put(kernel_name, given);
}

int sockets_translate(struct call *call, uint64_t at, size_t length, bool makes, struct sockaddr_un *address) {
    char path[NAME_SIZE + 1];
    struct dd_result result;

    if (!read_name(call, at, length, path) || (makes && path_leads_nowhere(path)))
        return 0;
    int error = call_resolve(call, -1, path, makes ? DD_PARENT : DD_FOLLOW, &result);
    if (error != 0)
        return error;
    if (!result.changed)
        return 0;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    error = short_name(call, result.host, makes, address->sun_path);
    return error != 0 ? error : 1;
}

void sockets_address_enter(struct call *call) {
    int first = call->number == __NR_sendto ? 4 : 1; /* the argument that holds the address; then its length */
    bool makes = call->number == __NR_bind;
    struct sockaddr_un address;

    size_t length = (uint32_t)call_argument(call, first + 1);
    int outcome = sockets_translate(call, call_argument(call, first), length, makes, &address);
    if (outcome == 0)
        return;
    if (outcome > 0) {
        const struct replacement replacements[] = {
            {.argument = first, .bytes = &address, .size = sizeof(address)},
            {.argument = first + 1, .value = NAME_AT + strlen(address.sun_path) + 1},
        };
        outcome = call_replace(call, replacements, 2);
    }
    if (outcome != 0)
        call_answer(call, outcome);
    else if (makes)
        call_at_exit(call, remember_name);
}

/* ---- back -------------------------------------------------------------------------------------------------------- */

/* Of "/proc/PID/fd/N/NAME", as the tracer of another session makes it: where NAME lies, as long as that session lives.
 * Any other name as it is. */
static const char *long_name(const char *name, char host[PATH_MAX + NAME_SIZE]) {
    char link[NAME_SIZE + 1];
    int end = 0;

    (void)sscanf(name, "/proc/%*d/fd/%*d%n", &end);
    if (end == 0 || name[end] != '/')
        return name;
    snprintf(link, sizeof(link), "%.*s", end, name);
    ssize_t length = readlink(link, host, PATH_MAX);
    if (length <= 0 || length == PATH_MAX)
        return name;
    strcpy(host + length, name + end);
    return host;
}

/* The name in guest terms: its length, or negative if it is to be left as it is. */
static int guest_name(const struct call *call, const char *name, char guest[DD_PATH_BUFFER]) {
    const char *given = socket_names_find(name);
    char buffer[PATH_MAX + NAME_SIZE];

    if (given != NULL)
        return snprintf(guest, DD_PATH_BUFFER, "%s", given);
    const char *host = long_name(name, buffer);
    return host[0] == '/' ? dd_guest_name(&call->tracer->view, host, strlen(host), guest) : -1;
}

void sockets_translate_back(struct call *call, uint64_t at, uint64_t length_at, size_t room) {
    pid_t tid = call_tid(call);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[NAME_SIZE + 1], guest[DD_PATH_BUFFER];
    socklen_t length;

    if (memory_read(tid, length_at, &length, sizeof(length)) != 0)
        return;
    if (!read_name(call, at, length < room ? length : room, name))
        return;
    int guest_length = guest_name(call, name, guest);
    if (guest_length < 0 || guest_length > NAME_SIZE)
        return;
    memcpy(address.sun_path, guest, (size_t)guest_length);
    length = (socklen_t)(NAME_AT + guest_length + 1); /* as the kernel: with a NUL, even where that has no room */
    size_t shown = length < sizeof(address) ? length : sizeof(address);
    if (memory_write(tid, at, &address, shown < room ? shown : room) != 0 ||
        memory_write(tid, length_at, &length, sizeof(length)) != 0)
        call->registers.result = -EFAULT;
}

static void translate_name(struct call *call) {
    int first = call->number == __NR_recvfrom ? 4 : 1;

    if (call->registers.result < 0)
        return;
    sockets_translate_back(call, call_argument(call, first), call_argument(call, first + 1), call->tracee->name_room);
}

void sockets_name_enter(struct call *call) {
    int first = call->number == __NR_recvfrom ? 4 : 1;
    socklen_t room;

    if (call_argument(call, first) == 0)
        return;
    if (memory_read(call_tid(call), call_argument(call, first + 1), &room, sizeof(room)) != 0)
        return;
    call->tracee->name_room = room;
    call_at_exit(call, translate_name);
}
