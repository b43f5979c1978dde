/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The line protocol of the test drivers: words separated by single blanks, strings in hex.
 *
 * Rules of this file
 *  - A string is its bytes in hex, "-" if empty, "~" for none (NULL); so every path fits, newline and all.
 *  - One line in, one line out.
 */
#ifndef DD_DRIVER_LINES_H
#define DD_DRIVER_LINES_H

#include <stddef.h>
#include <stdio.h>

#define DRIVER_WORDS 8

struct driver_line {
    char *text;
    size_t size;
    char *words[DRIVER_WORDS];
    size_t count;
};

/* The next line, split; 0 at the end of input. */
int driver_read(struct driver_line *line);

/* A word as a string, decoded in place; NULL if it is "~" or not there. */
char *driver_string(struct driver_line *line, size_t word);

long driver_number(const struct driver_line *line, size_t word);

void driver_put(const char *text, size_t length);

#endif
