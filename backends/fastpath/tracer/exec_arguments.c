/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The argument vector of execve.
 *
 * Rules of this file
 *  - Only a script needs a new vector. Its strings stay where they are but for the few new ones; it lies in scratch
 *    slots, as many as it takes. All of them together (640 KiB) hold 80,000 arguments; more are E2BIG.
 *  - The kernel makes argv[0] "" of an empty vector and then lets a script replace that, so an empty one has no rest
 *    either.
 */
#define _GNU_SOURCE
#include "exec_arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "abi.h"
#include "memory.h"

#define WORD sizeof(uint64_t)
#define STRING_MAX (32UL * 4096)                /* MAX_ARG_STRLEN, linux/binfmts.h */
#define STACK_SHARE (8UL * 1024 * 1024 / 4 * 3) /* _STK_LIM / 4 * 3, bprm_stack_limits */
#define SHARE_MIN (32UL * 4096)                 /* ARG_MAX, linux/limits.h */
#define WORDS_AT_ONCE 512

/* The words of a vector up to its NULL, at most `limit` of them: the count, or -EFAULT, -E2BIG. `words` may be NULL. */
static long read_vector(pid_t tid, uint64_t address, uint64_t *words, size_t limit) {
    uint64_t part[WORDS_AT_ONCE];
    size_t count = 0;

    while (address && count <= limit) {
        int got = memory_read_some(tid, address + count * WORD, part, sizeof(part));

        if (got < (int)WORD)
            return -EFAULT;
        for (size_t i = 0; i < (size_t)got / WORD; i++, count++) {
            if (!part[i])
                return (long)count;
            if (count == limit)
                return -E2BIG;
            if (words)
                words[count] = part[i];
        }
    }
    return (long)count;
}

/* Bytes of a string with its NUL, or -EFAULT, -E2BIG. */
static long string_size(pid_t tid, uint64_t address) {
    char part[4096];
    size_t size = 0;

    while (size < STRING_MAX) {
        int got = memory_read_some(tid, address + size, part, sizeof(part));
        const char *end;

        if (got <= 0)
            return -EFAULT;
        end = memchr(part, '\0', (size_t)got);
        if (end)
            return size + (size_t)(end - part) < STRING_MAX ? (long)(size + (size_t)(end - part) + 1) : -E2BIG;
        size += (size_t)got;
    }
    return -E2BIG;
}

/* Bytes that the kernel grants to strings and pointers. */
static size_t granted(pid_t tid) {
    struct rlimit stack = {RLIM_INFINITY, RLIM_INFINITY};
    size_t share = STACK_SHARE;

    (void)prlimit(tid, RLIMIT_STACK, NULL, &stack);
    if (stack.rlim_cur / 4 < share)
        share = stack.rlim_cur / 4;
    return share > SHARE_MIN ? share : SHARE_MIN;
}

/* Takes the strings of a vector off what is left: 0 or -errno. */
static int check_strings(pid_t tid, uint64_t vector, long count, size_t *left) {
    for (long n = 0; n < count; n++) {
        uint64_t address;
        int error = memory_read(tid, vector + (uint64_t)n * WORD, &address, WORD);
        long size = error < 0 ? error : string_size(tid, address);

        if (size < 0)
            return (int)size;
        if ((size_t)size > *left)
            return -E2BIG;
        *left -= (size_t)size;
    }
    return 0;
}

int exec_arguments_check(const struct call *call, uint64_t argv, uint64_t environment) {
    pid_t tid = call_tid(call);
    size_t left = granted(tid), limit = left / WORD;
    long arguments = read_vector(tid, argv, NULL, limit);
    long variables = arguments < 0 ? arguments : read_vector(tid, environment, NULL, limit);
    int error;

    if (variables < 0)
        return (int)variables;
    if ((size_t)((arguments ? arguments : 1) + variables) >= limit)
        return -E2BIG;
    left -= (size_t)((arguments ? arguments : 1) + variables) * WORD;
    error = check_strings(tid, environment, variables, &left);
    return error < 0 ? error : check_strings(tid, argv, arguments, &left);
}

/* ---- a script's vector --------------------------------------------------------------------------------------------
 */

struct block {
    char *bytes;
    size_t used;
    uint64_t address; /* where it will lie in the caller */
};

static uint64_t put_string(struct block *block, const char *text) {
    uint64_t address = block->address + block->used;
    size_t size = strlen(text) + 1;

    memcpy(block->bytes + block->used, text, size);
    block->used += size;
    return address;
}

static size_t head_size(const struct exec_head *head) {
    size_t size = strlen(head->execfn) + 1;

    for (size_t n = 0; n < head->count; n++)
        size += strlen(head->scripts[n].interpreter) + 1 + strlen(head->scripts[n].argument) + 1;
    return size;
}

/* Each script put its interpreter and argument in front of what was there, in place of the name it was called by. */
static size_t put_head(struct block *block, const struct exec_head *head, uint64_t *vector) {
    size_t count = 0;

    for (size_t n = head->count; n-- > 0;) {
        vector[count++] = put_string(block, head->scripts[n].interpreter);
        if (head->scripts[n].has_argument)
            vector[count++] = put_string(block, head->scripts[n].argument);
    }
    vector[count++] = put_string(block, head->execfn);
    return count;
}

static int place_block(struct call *call, const char *path, const struct exec_head *head, const uint64_t *rest,
                       size_t rest_count, struct block *block) {
    size_t words = 2 * head->count + 1 + rest_count + 1;
    size_t vector_at = (strlen(path) + 1 + head_size(head) + WORD - 1) / WORD * WORD;
    size_t size = vector_at + words * WORD;
    uint64_t *vector, path_address;
    size_t count;

    block->address = call_scratch(call, size);
    if (!block->address)
        return -E2BIG;
    block->bytes = calloc(1, size);
    if (!block->bytes)
        return -ENOMEM;
    vector = (uint64_t *)(void *)(block->bytes + vector_at);
    path_address = put_string(block, path);
    count = put_head(block, head, vector);
    memcpy(vector + count, rest, rest_count * WORD);
    if (memory_write(call_tid(call), block->address, block->bytes, size) < 0)
        return -EFAULT;
    call_set_argument(call, 0, path_address);
    call_set_argument(call, 1, block->address + vector_at);
    return 0;
}

int exec_arguments_replace(struct call *call, const char *path, const struct exec_head *head, uint64_t argv) {
    const size_t limit = DD_SLOT_COUNT * DD_SLOT_SIZE / WORD;
    struct block block = {.used = 0};
    uint64_t *words;
    long count = read_vector(call_tid(call), argv, NULL, limit);
    int error;

    if (count < 0)
        return (int)count;
    words = calloc((size_t)count + 1, WORD);
    if (!words)
        return -ENOMEM;
    if (read_vector(call_tid(call), argv, words, (size_t)count) != count)
        error = -EFAULT; /* another thread changes it meanwhile */
    else
        error = place_block(call, path, head, words + (count > 0), (size_t)count - (count > 0), &block);
    free(block.bytes);
    free(words);
    return error;
}
