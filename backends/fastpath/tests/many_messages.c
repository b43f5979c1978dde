/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * recvmmsg on a Unix datagram socket: several messages of several senders, with room for whole, cut and no names.
 * Prints what the kernel writes for each.
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

int main(void) {
    static const char *const names[SENDERS] = {"one", "/spot/two", "", "./three"};
    static const socklen_t rooms[SENDERS] = {sizeof(struct sockaddr_un), sizeof(struct sockaddr_un), 20, 6};
    struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "/spot/receiver"}, from[ROOM];
    struct mmsghdr headers[ROOM];
    struct iovec parts[ROOM];
    char texts[ROOM][32];
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
    return 0;
}
