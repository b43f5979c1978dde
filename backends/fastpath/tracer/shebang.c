/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The first line of a script, as the kernel reads it (fs/binfmt_script.c, load_script).
 *
 * Rules of this file
 *  - The kernel's answers exactly, its odd ones too: a NUL ends the line unless a newline came first, a truncated
 *    argument is passed on truncated, a truncated interpreter is ENOEXEC, an empty interpreter is a name like any
 *    other.
 *  - Blanks are space and tab; whatever comes after the first run of them is one argument.
 */
#define _GNU_SOURCE
#include "shebang.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* Both look at `last` too, as the kernel's do; NULL: there is none. */
static const char *next_not_blank(const char *first, const char *last) {
    for (; first <= last; first++)
        if (!is_blank(*first))
            return first;
    return NULL;
}

static const char *next_terminator(const char *first, const char *last) {
    for (; first <= last; first++)
        if (is_blank(*first) || !*first)
            return first;
    return NULL;
}

/* Where the line ends, at its newline or where the buffer ends; NULL: the interpreter's name may go on behind the
 * buffer. */
static const char *line_end(const char *head) {
    const char *last = head + SHEBANG_SIZE - 1;
    const char *name;

    for (const char *c = head; c <= last && *c; c++)
        if (*c == '\n')
            return c;
    name = next_not_blank(head + 2, last);
    return name && next_terminator(name, last) ? last : NULL;
}

/* The text from `from`, which ends at `end` or at a NUL before. */
static void copy_word(char to[SHEBANG_SIZE], const char *from, const char *end) {
    size_t length = strnlen(from, (size_t)(end - from));

    memcpy(to, from, length);
    to[length] = '\0';
}

int shebang_parse(const char head[SHEBANG_SIZE], struct shebang *shebang) {
    const char *end, *name, *separator, *argument = NULL;

    if (head[0] != '#' || head[1] != '!')
        return 0;
    end = line_end(head);
    if (!end)
        return -ENOEXEC;
    while (is_blank(end[-1]))
        end--;
    name = next_not_blank(head + 2, end);
    if (!name || name == end)
        return -ENOEXEC;
    separator = next_terminator(name, end);
    if (separator && *separator)
        argument = next_not_blank(separator, end);
    copy_word(shebang->interpreter, name, separator && separator < end ? separator : end);
    shebang->has_argument = argument != NULL;
    copy_word(shebang->argument, argument ? argument : end, end);
    return 1;
}
