/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Lists a folder by both calls, with a buffer that holds a few entries: prints "CALL TYPE NAME", sorted. Then with
 * buffers of every size, and tells where more was written than there was room for, or nothing.
 *
 *     small_listing FOLDER
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROOM = 512, LINES = 1000, LARGEST_ENTRY = 40 /* of the short names that the test has */ };

struct old_dirent { /* getdents(2) */
    unsigned long d_ino, d_off;
    unsigned short d_reclen;
    char d_name[];
};

static char *lines[LINES];
static size_t line_count;

static void note(const char *call, int type, const char *name) {
    const char *kind = type == DT_DIR ? "folder" : type == DT_REG ? "file" : "other";

    if (line_count < LINES && asprintf(&lines[line_count], "%s %s %s", call, kind, name) > 0)
        line_count++;
}

static void list(const char *folder, int is_old) {
    char buffer[ROOM] __attribute__((aligned(8)));
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY);
    long got;

    while ((got = syscall(is_old ? SYS_getdents : SYS_getdents64, descriptor, buffer, sizeof(buffer))) > 0)
        for (long at = 0; at < got;) {
            const struct old_dirent *old = (const struct old_dirent *)(const void *)(buffer + at);
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(buffer + at);
            if (is_old)
                note("getdents", buffer[at + old->d_reclen - 1], old->d_name); /* the type is the last byte */
            else
                note("getdents64", entry->d_type, entry->d_name);
            at += is_old ? old->d_reclen : entry->d_reclen;
        }
    close(descriptor);
}

static void list_with_room(const char *folder, long call, long room) {
    char buffer[2 * ROOM] __attribute__((aligned(8)));
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY);

    memset(buffer, '#', sizeof(buffer));
    long got = syscall(call, descriptor, buffer, (unsigned long)room);
    close(descriptor);
    if (room >= LARGEST_ENTRY && got <= 0)
        printf("call %ld wrote nothing into %ld bytes\n", call, room);
    for (long at = room; at < (long)sizeof(buffer); at++)
        if (got > room || buffer[at] != '#') {
            printf("call %ld wrote beyond %ld bytes\n", call, room);
            return;
        }
}

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    list(argv[1], 0);
    list(argv[1], 1);
    qsort(lines, line_count, sizeof(lines[0]), compare);
    for (size_t n = 0; n < line_count; n++)
        puts(lines[n]);
    for (long room = 0; room < ROOM; room++) {
        list_with_room(argv[1], SYS_getdents, room);
        list_with_room(argv[1], SYS_getdents64, room);
    }
    return 0;
}
