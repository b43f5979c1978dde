/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * From a path of the caller's to what the kernel is given.
 *
 * Rules of this file
 *  - 0, -ENOENT (certain), or SLOW. What follows from 0: the kernel's own walk of `path` at `directory`, with no link
 *    followed at its end, ends at the guest's file, unless the epoch moved (place_holds).
 *  - A relative name of one component that is no mount point's needs no translation: working directory and descriptors
 *    are the host's. With more of them each directory on the way is shown to be no link, now.
 */
#ifndef DD_LIBRARY_PLACE_H
#define DD_LIBRARY_PLACE_H

#include "library.h"

/* Paths beyond these go to the tracer. */
enum { PLACE_HOST = 640, PLACE_LITERAL = 320 };

struct place {
    int directory;
    const char *path;        /* for the kernel */
    const char *name;        /* the last component, in the caller's text */
    size_t name_length;      /* without what comes after it: a slash */
    size_t directory_length; /* of the part of `path` before the last slash, if absolute */
    int mount;               /* of the directory; -1: not known */
    uint64_t epoch;
    bool absolute; /* path is a host path, from the root */
    bool is_dot;   /* the directory itself */
};

/* The directory of the last component is looked up, and nothing is known of that. host: PLACE_HOST bytes. */
long place_of(int directory, const char *path, char *host, struct place *place);

/* All of it, with links at the end followed: there is such a file, or was when it was remembered. A path that does not
 * begin with a slash is SLOW. */
long place_followed(const char *path, char *host, struct place *place);

/* Opens (O_PATH) what the path leads to if there is no link on the way: the descriptor or -errno. With O_NOFOLLOW a link at
 * the end is opened itself. */
long place_open(int directory, const char *path, uint64_t flags);

/* The host path lies in procfs, where links say something else to the guest. */
bool place_in_procfs(const char *host);

/* That no name was made to lead elsewhere while the call ran. */
static inline bool place_holds(const struct place *place) {
    return likely(epoch_now() == place->epoch);
}

static inline unsigned mount_name_bit(const char *name, size_t length) {
    uint32_t ends = (uint32_t)(unsigned char)name[0] | (uint32_t)(unsigned char)name[length - 1] << 8;

    return ((ends | (uint32_t)length << 16) * 0x9e3779b1U) >> 20; /* 2^32 / golden ratio; 12 bits: 64 words of 64 */
}

/* Perhaps the name of a mount point. */
static inline bool may_be_mount_name(const char *name, size_t length) {
    unsigned bit = mount_name_bit(name, length);

    return (fast.mount_names[bit / 64] >> (bit % 64) & 1) != 0;
}

static inline bool is_dots(const char *name, size_t length) {
    return name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.'));
}

#endif
