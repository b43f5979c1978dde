/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The tracer's directory cache (rules: dir_cache.h). Only compiled into the tracer: it holds descriptors.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_PATH, memrchr */
#endif
#include "dir_cache.h"

#include "sys.h"
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The literal text of a directory, which is the cache's key: where it starts and the directory part of the path. */
struct key {
    char text[DD_DIR_CACHE_LITERAL];
    size_t length, base_length;
    uint32_t hash;
    const char *last; /* the path's last component and slashes after it */
};

/* Collects the links passed, as long as an entry has room for them. */
struct collected {
    struct dd_link_log log;
    struct dd_cached_link links[DD_DIR_CACHE_LINKS];
    size_t count;
    bool too_much;
};

void dd_dir_cache_open(struct dd_dir_cache *cache, int below) {
    cache->on = true;
    cache->below = below;
}

static void forget(struct dd_cached_dir *dir) {
    if (dir->literal_length != 0)
        close(dir->descriptor);
    dir->literal_length = 0;
}

void dd_dir_cache_close(struct dd_dir_cache *cache) {
    for (size_t n = 0; n < DD_DIR_CACHE_ENTRIES; n++)
        forget(&cache->dirs[n]);
    cache->on = false;
}

void dd_dir_cache_leave(struct dd_dir_cache *cache, const char *host, size_t length) {
    for (size_t n = 0; n < DD_DIR_CACHE_ENTRIES; n++) {
        struct dd_cached_dir *dir = &cache->dirs[n];

        if (dir->literal_length != 0 && dir->host_length >= length && memcmp(dir->host, host, length) == 0 &&
            (dir->host[length] == '/' || dir->host[length] == '\0'))
            forget(dir);
    }
    if (cache->on && chdir("/") != 0)
        dd_dir_cache_close(cache); /* never seen; without it nothing is proved from a directory of the guest's */
}

size_t dd_dir_cache_held(const struct dd_dir_cache *cache) {
    size_t held = 0;

    for (size_t n = 0; n < DD_DIR_CACHE_ENTRIES; n++)
        held += cache->dirs[n].literal_length != 0;
    return held;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static uint32_t hash_of(const char *text, size_t length) {
    uint64_t hash = length, block;

    for (; length >= sizeof block; text += sizeof block, length -= sizeof block) {
        memcpy(&block, text, sizeof block);
        hash = (hash ^ block) * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */
        hash ^= hash >> 32;
    }
    block = 0;
    memcpy(&block, text, length);
    hash = (hash ^ block) * 0x9e3779b97f4a7c15ULL;
    return (uint32_t)(hash >> 32);
}

/* False where the path has no directory part that would be worth it. */
static bool make_key(const char *base_host, const char *path, struct key *key) {
    size_t length = strlen(path), base_length = path[0] == '/' ? 0 : strlen(base_host), end = length;
    const char *slash;

    while (end > 0 && path[end - 1] == '/')
        end--;
    if (end == 0 || (slash = memrchr(path, '/', end)) == NULL)
        return false;
    key->last = slash + 1;
    if (key->last[strspn(key->last, "./")] == '\0') /* "." and ".." */
        return false;
    end = (size_t)(slash - path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    if (end == 0 || base_length + end >= sizeof key->text)
        return false;
    if (base_length > 0)
        memcpy(key->text, base_host, base_length);
    memcpy(key->text + base_length, path, end);
    key->length = base_length + end;
    key->text[key->length] = '\0';
    key->base_length = base_length;
    key->hash = hash_of(key->text, key->length);
    return true;
}

/* ---- proof ------------------------------------------------------------------------------------------------------- */

/* That the directory is still where it was found, and that the links still lead there. */
static bool is_proved(const struct dd_cached_dir *dir) {
    char text[DD_DIR_CACHE_HOST + 1];
    const char *right = dir->host_length == 0 ? "/" : dir->host;
    ssize_t length;

    /* Not getcwd(3): glibc looks for a name by itself where the kernel has none. */
    if (fchdir(dir->descriptor) != 0 || syscall(SYS_getcwd, text, sizeof text) < 0 || strcmp(text, right) != 0)
        return false;
    for (size_t n = 0; n < dir->link_count; n++) {
        const struct dd_cached_link *link = &dir->links[n];

        length = dd_sys_readlink(link->host, text, sizeof text);
        if (length != link->text_length || memcmp(text, link->text, link->text_length) != 0)
            return false;
    }
    return true;
}

/* ---- filling ----------------------------------------------------------------------------------------------------- */

static void collect(struct dd_link_log *log, const char *host, size_t host_length, const char *text,
                    size_t text_length) {
    struct collected *collected = (struct collected *)log;
    struct dd_cached_link *link = &collected->links[collected->count];

    if (collected->count == DD_DIR_CACHE_LINKS || host_length >= sizeof link->host || text_length > sizeof link->text) {
        collected->too_much = true;
        return;
    }
    memcpy(link->host, host, host_length + 1);
    memcpy(link->text, text, text_length);
    link->host_length = (uint16_t)host_length;
    link->text_length = (uint16_t)text_length;
    collected->count++;
}

static void keep(struct dd_dir_cache *cache, struct dd_cached_dir *dir, const struct key *key,
                 const struct collected *collected, const struct dd_result *result) {
    int descriptor;

    if (!cache->on || collected->too_much || result->up || result->caller_dependent || result->outside ||
        result->host_length >= sizeof dir->host || result->guest_length >= sizeof dir->guest)
        return;
    descriptor = open(result->host_length == 0 ? "/" : result->host, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0)
        return;
    if (descriptor >= cache->below) {
        close(descriptor);
        return;
    }
    forget(dir);
    dir->descriptor = descriptor;
    dir->hash = key->hash;
    dir->literal_length = (uint16_t)key->length;
    dir->base_length = (uint16_t)key->base_length;
    memcpy(dir->literal, key->text, key->length);
    dir->host_length = (uint16_t)result->host_length;
    memcpy(dir->host, result->host, result->host_length + 1);
    dir->guest_length = (uint16_t)result->guest_length;
    memcpy(dir->guest, result->guest, result->guest_length + 1);
    dir->mount = result->mount;
    dir->changed = result->changed;
    dir->link_count = (uint8_t)collected->count;
    memcpy(dir->links, collected->links, collected->count * sizeof collected->links[0]);
    if (!is_proved(dir)) /* it moved in between */
        forget(dir);
}

/* ---- use --------------------------------------------------------------------------------------------------------- */

static void start_there(const struct dd_cached_dir *dir, struct dd_result *result) {
    memcpy(result->host, dir->host, (size_t)dir->host_length + 1);
    memcpy(result->guest, dir->guest, (size_t)dir->guest_length + 1);
    result->host_length = dir->host_length;
    result->guest_length = dir->guest_length;
    result->mount = dir->mount;
    result->changed = dir->changed;
    result->links = dir->link_count;
    result->magic = result->missing = result->mount_point = false;
    result->outside = result->caller_dependent = result->up = false;
    result->here_length = dir->host_length; /* is_proved went there */
}

static bool matches(const struct dd_cached_dir *dir, const struct key *key) {
    return dir->hash == key->hash && dir->literal_length == key->length && dir->base_length == key->base_length &&
           memcmp(dir->literal, key->text, key->length) == 0;
}

/* Walks the directory part and leaves the result there. */
static int walk_directory(const struct dd_view *view, const struct dd_process *process, const struct key *key,
                          struct dd_link_log *log, struct dd_result *result) {
    int error;

    result->changed = result->magic = result->missing = result->mount_point = result->outside = false;
    result->caller_dependent = result->up = false;
    result->links = 0;
    result->here_length = 0;
    if (key->base_length == 0) {
        dd_walk_at_root(view, result);
    } else {
        char base[DD_DIR_CACHE_LITERAL];

        memcpy(base, key->text, key->base_length);
        base[key->base_length] = '\0';
        dd_walk_at_base(view, base, result);
    }
    if (key->base_length == 0 && result->mount < 0)
        return -ENOENT;
    if ((error = dd_walk(view, process, key->text + key->base_length, DD_FOLLOW, log, result)) != 0)
        return error;
    if (result->missing)
        return -ENOENT;
    result->host_length = result->name_length;
    result->host[result->host_length] = '\0';
    result->mount_point = false;
    return 0;
}

int dd_resolve_cached(struct dd_dir_cache *cache, const struct dd_view *view, const struct dd_process *process,
                      const char *base_host, const char *path, enum dd_mode mode, struct dd_result *result) {
    struct collected collected = {.log = {.link = collect}};
    struct dd_cached_dir *dir;
    struct key key;
    int error;

    if (memchr(path, '\0', PATH_MAX) == NULL || path[0] == '\0' || (path[0] != '/' && base_host == NULL) ||
        !make_key(base_host, path, &key))
        return dd_resolve(view, process, base_host, path, mode, result);
    dir = &cache->dirs[key.hash % DD_DIR_CACHE_ENTRIES];
    if (matches(dir, &key) && is_proved(dir)) {
        cache->hits++;
        start_there(dir, result);
    } else {
        cache->misses++;
        if (matches(dir, &key))
            forget(dir);
        if ((error = walk_directory(view, process, &key, &collected.log, result)) != 0)
            return error;
        if (result->magic)
            return dd_resolve(view, process, base_host, path, mode, result);
        keep(cache, dir, &key, &collected, result);
    }
    if ((error = dd_walk(view, process, key.last, mode, NULL, result)) != 0)
        return error;
    if (path[0] == '/')
        result->changed = strcmp(path, result->host) != 0;
    return 0;
}
