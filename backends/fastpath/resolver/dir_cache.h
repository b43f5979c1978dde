/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The tracer's directory cache: the directory part of a path, resolved once. Sound without any time limit.
 *
 * Rules of this file
 *  - An entry holds the directory open (O_PATH). A hit is proved each time: getcwd there must still say the host path
 *    that was found, so no directory on the way was renamed, removed or replaced by a link; and each guest link that
 *    was passed must still say the same.
 *  - fchdir and getcwd cost a third of reading /proc/self/fd/N. So the working directory of the process is the
 *    cache's: its user has nothing to do with relative host paths.
 *  - What that does not prove is not remembered: paths with "..", through procfs or outside of the binds, long ones,
 *    ones with more links than an entry has room for.
 *  - Direct mapped and bounded: at most DD_DIR_CACHE_ENTRIES descriptors, and none beyond a number that its user says.
 *  - Not covered: a file system that the host mounts over a directory while the session runs; the host path then leads
 *    into it as for everybody, but links in it that are met above the last component would be followed in host terms.
 */
#ifndef DD_DIR_CACHE_H
#define DD_DIR_CACHE_H

#include "resolver.h"

#define DD_DIR_CACHE_ENTRIES 256
#define DD_DIR_CACHE_LITERAL 256
#define DD_DIR_CACHE_HOST 400
#define DD_DIR_CACHE_LINKS 2

struct dd_cached_link {
    uint16_t host_length, text_length;
    char host[256], text[128];
};

struct dd_cached_dir {
    int descriptor; /* valid if literal_length is not 0 */
    uint32_t hash;
    uint16_t literal_length, base_length, host_length, guest_length; /* literal: base_host, then the directory part */
    int mount;
    bool changed;
    uint8_t link_count;
    char literal[DD_DIR_CACHE_LITERAL], host[DD_DIR_CACHE_HOST], guest[DD_DIR_CACHE_LITERAL];
    struct dd_cached_link links[DD_DIR_CACHE_LINKS];
};

struct dd_dir_cache {
    bool on;
    int below; /* descriptors from this number on are left to others */
    unsigned long hits, misses;
    struct dd_cached_dir dirs[DD_DIR_CACHE_ENTRIES];
};

/* A zeroed cache is off, and may be used all the same. */
void dd_dir_cache_open(struct dd_dir_cache *cache, int below);
void dd_dir_cache_close(struct dd_dir_cache *cache);

/* Lets go of a directory of the host's and of all below it: before it is removed or renamed. What is held open is not
 * gone, and who watches it (inotify) would not be told. */
void dd_dir_cache_leave(struct dd_dir_cache *cache, const char *host, size_t length);

size_t dd_dir_cache_held(const struct dd_dir_cache *cache);

/* As dd_resolve, with the same answers. One view for one cache. */
int dd_resolve_cached(struct dd_dir_cache *cache, const struct dd_view *view, const struct dd_process *process,
                      const char *base_host, const char *path, enum dd_mode mode, struct dd_result *result);

#endif
