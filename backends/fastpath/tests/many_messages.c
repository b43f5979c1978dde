/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * recvmmsg on a Unix datagram socket: several messages of several senders, with room for whole, cut and no names.
 * Prints what the kernel writes for each. Then sendmmsg of messages with and without a name.
 *
 *     many_messages OTHER    a free name for a socket
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { SENDERS = 4, ROOM = 8 };

static void must(int good, const char *what) {
    if (!good) {
        perror(what);
        exit(1);
    }
}

static int bound(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int made = socket(AF_UNIX, SOCK_DGRAM, 0);

    strcpy(address.sun_path, name);
    must(made >= 0 && (!*name || bind(made, (void *)&address, sizeof(address)) == 0), "bind");
    return made;
}

/* The second has a name of its own, the others go where the socket is connected to. */
static void send_three(const struct sockaddr_un *to, int receiver, const char *name) {
    struct sockaddr_un other = {.sun_family = AF_UNIX};
    struct iovec part = {"text", 4};
    struct mmsghdr headers[3];
    int there = bound(name), sender = bound("");
    char text[32];
    int sent = 0, more = 1;

    strcpy(other.sun_path, name);
    memset(headers, 0, sizeof(headers));
    for (int n = 0; n < 3; n++)
        headers[n].msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
    headers[1].msg_hdr.msg_name = &other;
    headers[1].msg_hdr.msg_namelen = sizeof(other);
    must(connect(sender, (const void *)to, sizeof(*to)) == 0, "connect");
    for (; sent < 3 && more > 0; sent += more)
        must((more = sendmmsg(sender, headers + sent, (unsigned)(3 - sent), 0)) > 0, "sendmmsg");
    printf("%d sent of %u, %u and %u bytes", sent, headers[0].msg_len, headers[1].msg_len, headers[2].msg_len);
    printf(", %zd to the other", recv(there, text, sizeof(text), MSG_DONTWAIT));
    while (recv(receiver, text, sizeof(text), MSG_DONTWAIT) >= 0)
        printf(", one to the first");
    printf("\n");
}

int main(int argc, char **argv) {
    static const char *const names[SENDERS] = {"one", "/spot/two", "", "./three"};
    static const socklen_t rooms[SENDERS] = {sizeof(struct sockaddr_un), sizeof(struct sockaddr_un), 20, 6};
    struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "/spot/receiver"}, from[ROOM];
    struct mmsghdr headers[ROOM];
    struct iovec parts[ROOM];
    char texts[ROOM][32];

    if (argc != 2)
        return 2;
    int receiver = bound("receiver");
    memset(headers, 0, sizeof(headers));
    for (int n = 0; n < SENDERS; n++)
        must(sendto(bound(names[n]), texts[n], (size_t)n + 1, 0, (void *)&to, sizeof(to)) == n + 1, "sendto");
    for (int n = 0; n < ROOM; n++) {
        memset(&from[n], '.', sizeof(from[n]));
        parts[n] = (struct iovec){texts[n], sizeof(texts[n])};
        headers[n].msg_hdr = (struct msghdr){
            .msg_name = &from[n], .msg_namelen = rooms[n % SENDERS], .msg_iov = &parts[n], .msg_iovlen = 1};
    }
    int got = recvmmsg(receiver, headers, ROOM, MSG_DONTWAIT, NULL);
    printf("%d messages\n", got);
    for (int n = 0; n < got; n++)
        printf("%u bytes, name of %u: %.12s\n", headers[n].msg_len, headers[n].msg_hdr.msg_namelen,
               headers[n].msg_hdr.msg_namelen ? from[n].sun_path : "none");
    printf("%d\n", recvmmsg(receiver, headers, ROOM, MSG_DONTWAIT, NULL));
    send_three(&to, receiver, argv[1]);
    return 0;
}
