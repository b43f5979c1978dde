/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the fuzzers of execve's parsers share: laws that must hold, and with -DREPLAY a main for gcc, which runs the
 * files that it is given, or random inputs by themselves.
 */
#ifndef DD_FUZZ_REPLAY_H
#define DD_FUZZ_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void hold(bool law, const char *what) {
    if (law)
        return;
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

#ifdef REPLAY

#define RUNS 200000

/* Fills data with a random input, as near to a good one as the fuzzer likes; returns its size. */
size_t make_input(uint8_t *data, size_t room);

static void replay(const char *path) {
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(data, 1, sizeof(data), file) : 0;

    hold(file != NULL, path);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
}

int main(int argc, char **argv) {
    static uint8_t data[1 << 16];

    for (int n = 1; n < argc; n++)
        replay(argv[n]);
    for (int n = 0; argc == 1 && n < RUNS; n++) {
        size_t size = make_input(data, sizeof(data));
        uint8_t *exact = malloc(size ? size : 1); /* so that the sanitizer sees where it ends */

        memcpy(exact, data, size);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
    }
    return 0;
}

#endif

#endif
