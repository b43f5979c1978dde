/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The line protocol of the test drivers.
 */
#define _GNU_SOURCE /* getline */
#include "driver_lines.h"

#include <stdlib.h>
#include <string.h>

int driver_read(struct driver_line *line) {
    char *rest, *word;

    if (getline(&line->text, &line->size, stdin) < 0)
        return 0;
    line->text[strcspn(line->text, "\n")] = '\0';
    line->count = 0;
    for (word = strtok_r(line->text, " ", &rest); word != NULL && line->count < DRIVER_WORDS;
         word = strtok_r(NULL, " ", &rest))
        line->words[line->count++] = word;
    return 1;
}

static int digit(char letter) {
    return letter <= '9' ? letter - '0' : letter - 'a' + 10;
}

char *driver_string(struct driver_line *line, size_t word) {
    char *text = word < line->count ? line->words[word] : NULL;
    size_t length = 0;

    if (text == NULL || strcmp(text, "~") == 0)
        return NULL;
    if (strcmp(text, "-") != 0)
        for (; text[2 * length] != '\0'; length++)
            text[length] = (char)(digit(text[2 * length]) * 16 + digit(text[2 * length + 1]));
    text[length] = '\0';
    line->words[word] = NULL; /* decoded once only */
    return text;
}

long driver_number(const struct driver_line *line, size_t word) {
    return word < line->count ? strtol(line->words[word], NULL, 10) : 0;
}

void driver_put(const char *text, size_t length) {
    if (length == 0)
        putchar('-');
    for (size_t at = 0; at < length; at++)
        printf("%02x", (unsigned char)text[at]);
}
