/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Mapping an ELF image as the kernel does (fs/binfmt_elf.c).
 */
#ifndef DD_LOADER_MAP_H
#define DD_LOADER_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum image_kind {
    PROGRAM,             /* static, static-pie, or an interpreter that is started itself */
    INTERPRETED_PROGRAM, /* a PIE of this kind has a place of its own, away from the libraries */
    INTERPRETER,
};

struct image {
    uintptr_t bias;    /* AT_BASE of an interpreter */
    uintptr_t entry;   /* AT_ENTRY */
    uintptr_t headers; /* AT_PHDR */
    size_t header_count;
    uintptr_t code_start, code_end, data_start, data_end; /* as /proc/PID/stat says them */
    bool executable_stack;
};

/* Maps the file or does not return. */
void map_image(const char *path, enum image_kind kind, size_t page_size, struct image *image);

#endif
