/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Texts, many bytes at a time: with byte loops a stat costs a sixth more.
 *
 * Rules of this file
 *  - scan reads aligned blocks, so never beyond a page that the text does not reach into; a sanitizer must not look.
 *  - copy_padded may write up to TEXT_PADDING bytes beyond, and read as many: both buffers have them.
 */
#ifndef DD_LIBRARY_TEXT_H
#define DD_LIBRARY_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TEXT_PADDING = 16 };

/* Length of a text and where its last slash is (-1: nowhere). Texts of `limit` bytes and more: `limit`. */
struct scanned {
    int length, slash;
};

#if defined(__x86_64__)
#include <emmintrin.h>

__attribute__((no_sanitize("address", "thread"))) static inline struct scanned scan(const char *text, int limit) {
    const __m128i zero = _mm_setzero_si128(), slash = _mm_set1_epi8('/');
    unsigned offset = (unsigned)((uintptr_t)text & 15);
    const char *at = text - offset;
    unsigned keep = 0xffffu << offset;
    struct scanned found = {limit, -1};

    for (; at - text < limit; at += 16, keep = 0xffff) {
        __m128i block = _mm_load_si128((const __m128i *)(const void *)at);
        unsigned ends = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(block, zero)) & keep;
        unsigned slashes = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(block, slash)) & keep;
        if (ends != 0)
            slashes &= (1U << __builtin_ctz(ends)) - 1;
        if (slashes != 0)
            found.slash = (int)(at - text) + 31 - __builtin_clz(slashes);
        if (ends != 0) {
            found.length = (int)(at - text) + __builtin_ctz(ends);
            break;
        }
    }
    return found;
}

static inline void copy_block(char *to, const char *from) {
    _mm_storeu_si128((__m128i *)(void *)to, _mm_loadu_si128((const __m128i *)(const void *)from));
}
#else
static inline struct scanned scan(const char *text, int limit) {
    struct scanned found = {0, -1};

    for (; found.length < limit && text[found.length] != '\0'; found.length++)
        if (text[found.length] == '/')
            found.slash = found.length;
    return found;
}

static inline void copy_block(char *to, const char *from) {
    memcpy(to, from, 16);
}
#endif

static inline void copy_padded(char *to, const char *from, size_t length) {
    for (size_t at = 0; at < length; at += 16)
        copy_block(to + at, from + at);
}

static inline uint64_t text_word(const char *text) {
    uint64_t word;

    memcpy(&word, text, sizeof(word));
    return word;
}

/* A copy that reads no byte beyond. */
static inline void copy_exact(char *to, const char *from, size_t length) {
    if (length >= 16) {
        for (size_t at = 0; at + 16 < length; at += 16)
            copy_block(to + at, from + at);
        copy_block(to + length - 16, from + length - 16);
    } else if (length >= 8) {
        uint64_t first = text_word(from), last = text_word(from + length - 8);
        memcpy(to, &first, 8);
        memcpy(to + length - 8, &last, 8);
    } else {
        for (size_t at = 0; at < length; at++)
            to[at] = from[at];
    }
}

static inline int text_equal(const char *a, const char *b, size_t length) {
    size_t at = 0;

    if (length < 8) {
        for (; at < length; at++)
            if (a[at] != b[at])
                return 0;
        return 1;
    }
    for (; at + 8 < length; at += 8)
        if (text_word(a + at) != text_word(b + at))
            return 0;
    return text_word(a + length - 8) == text_word(b + length - 8);
}

static inline uint32_t text_hash(const char *text, size_t length) {
    const uint64_t golden = 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */
    uint64_t hash = length * golden;
    size_t at = 0;

    if (length >= 8) {
        for (; at + 8 <= length; at += 8) {
            hash = (hash ^ text_word(text + at)) * golden;
            hash ^= hash >> 29;
        }
        hash = (hash ^ text_word(text + length - 8)) * golden;
    } else {
        for (; at < length; at++)
            hash = (hash ^ (unsigned char)text[at]) * golden;
    }
    return (uint32_t)(hash >> 32);
}

/* Returns the end; no NUL. */
static inline char *put_decimal(char *to, unsigned long number) {
    char digits[20];
    size_t count = 0;

    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        *to++ = digits[--count];
    return to;
}

#endif
