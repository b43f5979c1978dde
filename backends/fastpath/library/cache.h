/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What is remembered: the text of a path without a link at its end -> where it leads.
 *
 * Rules of this file
 *  - An entry is good as long as the session's epoch stands where it stood before the entry was looked up; so every
 *    change by a process of the session is seen at once. Its life in milliseconds limits changes from outside alone.
 *  - A sequence per entry: whoever finds it being written walks away; what was read meanwhile counts for nothing.
 *    A fork or a longjmp in the midst of a write leaves that one entry unused for good.
 *  - Nothing missing is remembered.
 */
#ifndef DD_LIBRARY_CACHE_H
#define DD_LIBRARY_CACHE_H

#include "library.h"

enum { CACHE_LITERAL = 184, CACHE_HOST = 288 };

struct found {
    int mount;
    size_t host_length;
    unsigned links;
    uint64_t epoch; /* at which it is good */
};

/* host has CACHE_HOST bytes and more. */
bool cache_find(const char *literal, size_t length, char *host, struct found *found);
void cache_put(const char *literal, size_t length, const char *host, const struct found *found);

#endif
