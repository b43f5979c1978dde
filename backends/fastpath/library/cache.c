/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The cache (rules: cache.h). Direct mapped; only the pages of entries that are used cost memory.
 */
#include "cache.h"

#include <string.h>
#include <time.h>

#include "text.h"

enum { ENTRIES = 256 };

struct entry {
    uint32_t sequence; /* odd: being written */
    uint32_t hash;
    uint64_t epoch;
    uint32_t born_ms;
    int16_t mount;
    uint16_t links, literal_length, host_length;
    char literal[CACHE_LITERAL];
    char host[CACHE_HOST + TEXT_PADDING];
};

static struct entry entries[ENTRIES] __attribute__((aligned(64)));

static uint32_t now_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now); /* the vDSO's: 5 ns */
    return (uint32_t)now.tv_sec * 1000 + (uint32_t)(now.tv_nsec / 1000000);
}

/* Racing reads on purpose: a sequence that moved makes what was read count for nothing. */
__attribute__((no_sanitize("thread"))) bool cache_find(const char *literal, size_t length, char *host,
                                                       struct found *found) {
    uint32_t hash = text_hash(literal, length);
    const struct entry *entry = &entries[hash % ENTRIES];
    uint32_t sequence = __atomic_load_n(&entry->sequence, __ATOMIC_ACQUIRE);

    if ((sequence & 1) != 0 || entry->hash != hash || entry->literal_length != length || length > CACHE_LITERAL ||
        !text_equal(entry->literal, literal, length))
        return false;
    found->epoch = entry->epoch;
    found->mount = entry->mount;
    found->links = entry->links;
    found->host_length = entry->host_length;
    if (found->epoch != epoch_now() || now_ms() - entry->born_ms >= fast.life_ms || found->host_length > CACHE_HOST)
        return false;
    copy_padded(host, entry->host, found->host_length);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&entry->sequence, __ATOMIC_RELAXED) == sequence;
}

__attribute__((no_sanitize("thread"))) void cache_put(const char *literal, size_t length, const char *host,
                                                      const struct found *found) {
    uint32_t hash = text_hash(literal, length);
    struct entry *entry = &entries[hash % ENTRIES];
    uint32_t sequence = __atomic_load_n(&entry->sequence, __ATOMIC_RELAXED);

    if (fast.life_ms == 0 || length > CACHE_LITERAL || found->host_length > CACHE_HOST || (sequence & 1) != 0 ||
        !__atomic_compare_exchange_n(&entry->sequence, &sequence, sequence + 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    entry->hash = hash;
    entry->epoch = found->epoch;
    entry->born_ms = now_ms();
    entry->mount = (int16_t)found->mount;
    entry->links = (uint16_t)found->links;
    entry->literal_length = (uint16_t)length;
    entry->host_length = (uint16_t)found->host_length;
    memcpy(entry->literal, literal, length);
    memcpy(entry->host, host, found->host_length);
    __atomic_store_n(&entry->sequence, sequence + 2, __ATOMIC_RELEASE);
}
