/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What execve wants to know of an ELF file before there is no way back.
 */
#ifndef DD_TRACER_ELF_IMAGE_H
#define DD_TRACER_ELF_IMAGE_H

#include <linux/limits.h> /* PATH_MAX */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the bytes come from: reads like pread(2), a short count at the end; number of bytes or -errno. */
struct elf_source {
    long (*read)(const struct elf_source *source, void *buffer, size_t size, uint64_t offset);
    const void *context;
};

struct elf_program {
    bool interpreted;
    char interpreter[PATH_MAX]; /* PT_INTERP */
};

/* The program itself. 0, or -errno as execve answers: -ENOEXEC, -EIO, ... */
int elf_read_program(const struct elf_source *source, struct elf_program *program);

/* Its interpreter. 0, or -errno: -ELIBBAD, -EIO, ... */
int elf_check_interpreter(const struct elf_source *source);

#endif
