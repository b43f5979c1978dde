/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The view: binds are collected, ordered and indexed; a path's mount point is found without looking at every bind.
 *
 * Rules of this file
 *  - Set-up may take its time; a lookup costs one filter bit for a path that is no mount point, whatever the number
 *    of binds.
 *  - A view is written by dd_view_add and dd_view_finish only; afterwards it is read-only, for any number of threads.
 */
#include "view.h"

#include <errno.h>
#include <string.h>

_Static_assert((DD_BIND_SLOTS & (DD_BIND_SLOTS - 1)) == 0 && DD_BIND_SLOTS > DD_MAX_BINDS, "slots");

static uint64_t mixed(uint64_t value) {
    value *= 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */
    return value ^ (value >> 29);
}

/* The last eight bytes (all of a shorter text) and the length: enough to tell most names apart, and one load. */
static unsigned filter_bit(const char *text, size_t length) {
    uint64_t tail = 0;

    if (length >= sizeof tail)
        memcpy(&tail, text + length - sizeof tail, sizeof tail);
    else
        memcpy(&tail, text, length);
    return (unsigned)(mixed(tail + length) >> 52); /* 12 bits: 64 words of 64 */
}

static unsigned slot_of(const char *text, size_t length) {
    uint64_t hash = length, block;

    for (; length >= sizeof block; text += sizeof block, length -= sizeof block) {
        memcpy(&block, text, sizeof block);
        hash = mixed(hash ^ block);
    }
    block = 0;
    memcpy(&block, text, length);
    return (unsigned)(mixed(hash ^ block) >> 40) & (DD_BIND_SLOTS - 1);
}

static bool same(const char *text, size_t length, const char *other, size_t other_length) {
    return length == other_length && memcmp(text, other, length) == 0;
}

/* Finds the slot of a text, or the free one where it would go. */
static uint16_t *slot(const struct dd_view *view, struct dd_bind_index *index, const char *text, size_t length) {
    bool by_host = index == &view->by_host;
    unsigned at = slot_of(text, length);

    for (;; at = (at + 1) & (DD_BIND_SLOTS - 1)) {
        const struct dd_bind *bind;

        if (index->slots[at] == 0)
            return &index->slots[at];
        bind = &view->binds[index->slots[at] - 1];
        if (same(text, length, by_host ? bind->host : bind->guest, by_host ? bind->host_length : bind->guest_length))
            return &index->slots[at];
    }
}

static int indexed(const struct dd_view *view, const struct dd_bind_index *index, const char *text, size_t length) {
    unsigned bit = filter_bit(text, length);

    if ((index->filter[bit / 64] >> (bit % 64) & 1) == 0)
        return -1;
    return *slot(view, (struct dd_bind_index *)index, text, length) - 1;
}

static void enter(struct dd_view *view, struct dd_bind_index *index, const char *text, size_t length, size_t number) {
    unsigned bit = filter_bit(text, length);

    index->filter[bit / 64] |= 1ULL << (bit % 64);
    *slot(view, index, text, length) = (uint16_t)(number + 1);
}

/* ---- set-up ------------------------------------------------------------------------------------------------------ */

static bool is_canonical(const char *path, size_t length) {
    for (size_t at = 0, end; at < length; at = end) {
        const char *name = path + at + 1;
        size_t size;

        if (path[at] != '/')
            return false;
        for (end = at + 1; end < length && path[end] != '/'; end++)
            ;
        size = end - at - 1;
        if (size == 0 || (size <= 2 && name[0] == '.' && name[size - 1] == '.'))
            return false;
    }
    return true;
}

/* Into the view's text, without slashes at the end. */
static int take(struct dd_view *view, const char *path, const char **text, size_t *length) {
    size_t size = strlen(path);

    if (size >= PATH_MAX)
        return -ENAMETOOLONG;
    while (size > 0 && path[size - 1] == '/')
        size--;
    if (!is_canonical(path, size))
        return -EINVAL;
    if (size + 1 > sizeof view->text - view->text_used)
        return -E2BIG;
    *text = memcpy(view->text + view->text_used, path, size);
    view->text[view->text_used + size] = '\0';
    view->text_used += size + 1;
    *length = size;
    return 0;
}

int dd_view_add(struct dd_view *view, const char *host, const char *guest) {
    struct dd_bind bind;
    size_t number = 0;
    int error;

    if ((error = take(view, host, &bind.host, &bind.host_length)) != 0 ||
        (error = take(view, guest, &bind.guest, &bind.guest_length)) != 0)
        return error;
    while (number < view->count &&
           !same(bind.guest, bind.guest_length, view->binds[number].guest, view->binds[number].guest_length))
        number++;
    if (number == DD_MAX_BINDS)
        return -E2BIG;
    view->binds[number] = bind;
    if (number == view->count)
        view->count++;
    return 0;
}

static void sort_by_guest(struct dd_view *view) {
    for (size_t done = 1; done < view->count; done++) {
        struct dd_bind bind = view->binds[done];
        size_t at = done;

        for (; at > 0 && view->binds[at - 1].guest_length < bind.guest_length; at--)
            view->binds[at] = view->binds[at - 1];
        view->binds[at] = bind;
    }
}

static bool lies_below(const struct dd_bind *bind, const struct dd_bind *above) {
    return bind->guest_length > above->guest_length && bind->guest[above->guest_length] == '/' &&
           memcmp(bind->guest, above->guest, above->guest_length) == 0;
}

void dd_view_finish(struct dd_view *view) {
    sort_by_guest(view);
    memset(&view->by_guest, 0, sizeof view->by_guest);
    memset(&view->by_host, 0, sizeof view->by_host);
    for (size_t number = 0; number < view->count; number++) {
        const struct dd_bind *bind = &view->binds[number];
        size_t above = number + 1;
        int same_host = dd_view_bound_host(view, bind->host, bind->host_length);

        while (above < view->count && !lies_below(bind, &view->binds[above]))
            above++;
        view->parent[number] = (uint16_t)(above < view->count ? above : number);
        view->same_host[number] = (uint16_t)(same_host + 1);
        enter(view, &view->by_guest, bind->guest, bind->guest_length, number);
        enter(view, &view->by_host, bind->host, bind->host_length, number);
    }
}

/* ---- lookup ------------------------------------------------------------------------------------------------------ */

int dd_view_mount_at(const struct dd_view *view, const char *guest, size_t length) {
    return indexed(view, &view->by_guest, guest, length);
}

int dd_view_bound_host(const struct dd_view *view, const char *host, size_t length) {
    return indexed(view, &view->by_host, host, length);
}
