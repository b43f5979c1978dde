/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The declarative table of path calls, and what its columns mean.
 */
#ifndef DD_TRACER_PATH_CALLS_H
#define DD_TRACER_PATH_CALLS_H

#include <stddef.h>
#include <stdint.h>

/* How the kernel looks up the last component. */
enum lookup {
    FOLLOW,
    NOFOLLOW,
    PARENT,        /* only the directory is looked up: the call makes, removes or renames the entry */
    OPEN_FLAGS,    /* as open(2)'s flags say */
    CREATES,       /* creat(2) */
    NOFOLLOW_IF,   /* `bit` in the flags argument */
    FOLLOW_IF,
};

/* ARG(n): argument n; 0 stays "none" in a zero-initialised row. */
#define ARG(n) ((n) + 1)

struct path_argument {
    uint8_t dirfd; /* the directory's descriptor; none: the working directory */
    uint8_t path;
    uint8_t lookup; /* enum lookup */
    uint8_t flags;  /* the argument that OPEN_FLAGS, NOFOLLOW_IF and FOLLOW_IF look at; with PARENT those of the call */
    uint32_t bit;
    uint32_t usual; /* further bits of the flags that no kernel finds fault with, whatever else there is */
};

enum trait {
    QUERY = 1 << 0,         /* the result is nothing but what the file system says: the tracer may answer (query.c) */
    MAKES = 1 << 1,         /* its (last) path is the new entry: a mount point exists already */
    REMOVES = 1 << 2,       /* unlink, rmdir; its flags may hold AT_REMOVEDIR */
    OF_DIRECTORY = 1 << 3,  /* rmdir */
    RENAMES = 1 << 4,       /* rename; its flags may hold RENAME_* */
    LINKS = 1 << 5,         /* link: both paths must lie in one mount */
    LINK_TEXT = 1 << 6,     /* symlink */
    CHANGES_OWNER = 1 << 7, /* chown */
    TELLS_TYPE = 1 << 8,    /* of the queries: the answer says whether it is a link */
};

struct path_call {
    int number;
    unsigned traits;
    struct path_argument paths[2];
};

extern const struct path_call path_calls[];
extern const size_t path_call_count;

#endif
