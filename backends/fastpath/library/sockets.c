/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * connect to a named Unix socket; uname and gethostname.
 *
 * Rules of this file
 *  - bind is the tracer's: it remembers under which text a socket was bound.
 *  - connect may wait and is a point of cancellation: addresses that are no path are libc's own to connect to. To a Unix
 *    socket that has room, it does not wait.
 *  - The kernel would follow a link at the end: the socket is opened (O_PATH) without any, and connected to through that
 *    descriptor; so the length of host paths does not matter either.
 */
#include "library.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "place.h"
#include "text.h"

/* libc's own, under its second name. */
extern int __connect(int socket, const struct sockaddr *address, socklen_t length);

static bool is_named(const struct sockaddr_un *address, socklen_t length) {
    return length > offsetof(struct sockaddr_un, sun_path) + 1 && length <= sizeof(*address) &&
           (uintptr_t)address >= 4096 && address->sun_family == AF_UNIX && address->sun_path[0] == '/';
}

static __attribute__((noinline)) long connect_named(int socket, const struct sockaddr_un *address, socklen_t length) {
    static const char descriptors[] = "/proc/self/fd/";
    struct sockaddr_un translated = {.sun_family = AF_UNIX};
    char host[PLACE_HOST], path[sizeof(translated.sun_path) + 1];
    struct place place;
    size_t size = length - offsetof(struct sockaddr_un, sun_path);

    memcpy(path, address->sun_path, size);
    path[size] = '\0';
    if (session()->view.no_procfs || place_followed(path, host, &place) != 0)
        return SLOW;
    long opened = place_open(AT_FDCWD, host, 0);
    if (opened < 0)
        return SLOW;
    memcpy(translated.sun_path, descriptors, sizeof(descriptors));
    put_decimal(translated.sun_path + sizeof(descriptors) - 1, (unsigned long)opened);
    long result = page_call(SYS_connect, socket, (long)&translated, sizeof(translated), 0, 0);
    page_call(SYS_close, opened, 0, 0, 0, 0);
    fast.hits++;
    return result == -ENOENT || result == -ECONNREFUSED || result == -ENOTDIR ? SLOW : result;
}

EXPORT int connect(int socket, const struct sockaddr *address, socklen_t length) {
    long result = SLOW;

    if (is_named((const struct sockaddr_un *)(const void *)address, length) && fast_is_on())
        result = connect_named(socket, (const struct sockaddr_un *)(const void *)address, length);
    return result == SLOW ? __connect(socket, address, length) : (int)returned(result);
}

/* ---- the kernel's identity --------------------------------------------------------------------------------------- */

EXPORT int uname(struct utsname *name) {
    if (!fast_is_on() || !session()->has_identity)
        return (int)returned(raw_call(SYS_uname, (long)name, 0, 0, 0, 0));
    if ((uintptr_t)name < 4096)
        return (int)returned(-EFAULT);
    memcpy(name, session()->identity, sizeof(session()->identity));
    return 0;
}

EXPORT int gethostname(char *name, size_t size) {
    struct utsname kernel;

    if (uname(&kernel) != 0)
        return -1;
    size_t length = strlen(kernel.nodename) + 1;
    memcpy(name, kernel.nodename, length < size ? length : size);
    return length <= size ? 0 : (int)returned(-ENAMETOOLONG);
}
