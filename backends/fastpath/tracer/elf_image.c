/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What execve wants to know of an ELF file before there is no way back (fs/binfmt_elf.c, load_elf_binary up to
 * begin_new_exec).
 *
 * Rules of this file
 *  - The kernel's tests and no others, in its order: it looks at magic, type and machine, not at class or byte order
 *    (files of another class fail by the size of their program headers). What it finds wrong later ends the process:
 *    the loader's.
 *  - Files come from guests: every number in them is checked before it is used.
 */
#include "elf_image.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#if defined(__x86_64__)
#define ELF_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define ELF_MACHINE EM_AARCH64
#else
#error "no ELF machine for this architecture"
#endif

#define HEADERS_MAX 65536 /* bytes of program headers, load_elf_phdrs */
#define HEADERS_AT_ONCE 16

/* elf_read: all of it, or an error. */
static int read_all(const struct elf_source *source, void *buffer, size_t size, uint64_t offset) {
    long got = source->read(source, buffer, size, offset);

    if (got < 0)
        return (int)got;
    return (size_t)got == size ? 0 : -EIO;
}

/* 0 or -1: is it an image of this machine with headers of the right size? */
static int check_header(const Elf64_Ehdr *header) {
    size_t size = header->e_phnum * sizeof(Elf64_Phdr);

    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_machine != ELF_MACHINE)
        return -1;
    return header->e_phentsize == sizeof(Elf64_Phdr) && size > 0 && size <= HEADERS_MAX ? 0 : -1;
}

/* Looks at all program headers: 0 if they can be read, else -1. The first PT_INTERP, if there is one, goes to *found.
 */
static int read_segments(const struct elf_source *source, const Elf64_Ehdr *header, Elf64_Phdr *found,
                         bool *has_found) {
    Elf64_Phdr segments[HEADERS_AT_ONCE];

    *has_found = false;
    for (unsigned done = 0; done < header->e_phnum; done += HEADERS_AT_ONCE) {
        unsigned count = header->e_phnum - done < HEADERS_AT_ONCE ? header->e_phnum - done : HEADERS_AT_ONCE;
        uint64_t offset = header->e_phoff + done * sizeof(Elf64_Phdr);

        if (offset < header->e_phoff || read_all(source, segments, count * sizeof(Elf64_Phdr), offset) < 0)
            return -1;
        for (unsigned i = 0; i < count && !*has_found; i++) {
            if (segments[i].p_type != PT_INTERP)
                continue;
            *found = segments[i];
            *has_found = true;
        }
    }
    return 0;
}

static int read_interpreter(const struct elf_source *source, const Elf64_Phdr *segment, char name[PATH_MAX]) {
    int error;

    if (segment->p_filesz > PATH_MAX || segment->p_filesz < 2)
        return -ENOEXEC;
    error = read_all(source, name, segment->p_filesz, segment->p_offset);
    if (error < 0)
        return error;
    return name[segment->p_filesz - 1] == '\0' ? 0 : -ENOEXEC;
}

int elf_read_program(const struct elf_source *source, struct elf_program *program) {
    Elf64_Ehdr header = {.e_type = ET_NONE};
    Elf64_Phdr interpreter;
    long got =
        source->read(source, &header, sizeof(header), 0); /* a short file is as if zeroes followed, as in bprm->buf */

    program->interpreter[0] = '\0';
    program->interpreted = false;
    if (got < 0)
        return (int)got;
    if (check_header(&header) < 0 || (header.e_type != ET_EXEC && header.e_type != ET_DYN))
        return -ENOEXEC;
    if (read_segments(source, &header, &interpreter, &program->interpreted) < 0)
        return -ENOEXEC;
    return program->interpreted ? read_interpreter(source, &interpreter, program->interpreter) : 0;
}

int elf_check_interpreter(const struct elf_source *source) {
    Elf64_Ehdr header;
    Elf64_Phdr interpreter;
    bool has_interpreter;
    int error = read_all(source, &header, sizeof(header), 0);

    if (error < 0)
        return error;
    if (check_header(&header) < 0 || read_segments(source, &header, &interpreter, &has_interpreter) < 0)
        return -ELIBBAD;
    return 0;
}
