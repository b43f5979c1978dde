/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Fuzzes the reading of ELF files: libFuzzer's entry, and with -DREPLAY a main (fuzz_replay.h).
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -I. tracer/elf_image.c tests/fuzz_elf.c
 *   gcc -g -fsanitize=address,undefined -DREPLAY ... ; ./fuzz_elf [FILE...]
 */
#include "fuzz_replay.h"

#include <elf.h>
#include <errno.h>

#include "../tracer/elf_image.h"

#define READS_MAX (1 + 65536 / sizeof(Elf64_Phdr) / 16 + 1 + 1) /* header, program headers, interpreter */

static const uint8_t *bytes;
static size_t byte_count, reads;

static long read_bytes(const struct elf_source *source, void *buffer, size_t size, uint64_t offset) {
    (void)source;
    reads++;
    if (offset > INT64_MAX)
        return -EINVAL;
    if (offset >= byte_count)
        return 0;
    if (size > byte_count - offset)
        size = byte_count - offset;
    memcpy(buffer, bytes + offset, size);
    return (long)size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct elf_source source = {.read = read_bytes};
    struct elf_program program;
    int answer;

    bytes = data;
    byte_count = size;
    reads = 0;
    memset(&program, 0x7f, sizeof(program));
    answer = elf_read_program(&source, &program);
    hold(answer == 0 || answer == -ENOEXEC || answer == -EIO || answer == -EINVAL, "an answer that execve has");
    hold(reads <= READS_MAX, "so many reads and no more");
    if (answer == 0 && program.interpreted)
        hold(memchr(program.interpreter, '\0', sizeof(program.interpreter)) != NULL, "the interpreter is a string");
    reads = 0;
    answer = elf_check_interpreter(&source);
    hold(answer == 0 || answer == -ELIBBAD || answer == -EIO, "an answer that execve has");
    hold(reads <= READS_MAX, "so many reads and no more");
    return 0;
}

#ifdef REPLAY
/* A small image with a header that is mostly right. */
size_t make_input(uint8_t *data, size_t room) {
    Elf64_Ehdr header = {
        .e_type = ET_DYN, .e_machine = rand() % 8 ? EM_X86_64 : (Elf64_Half)rand(), .e_phoff = sizeof(header)};
    size_t count = (size_t)rand() % 40, size;

    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_phentsize = rand() % 16 ? sizeof(Elf64_Phdr) : (Elf64_Half)rand();
    header.e_phnum = rand() % 8 ? (Elf64_Half)count : (Elf64_Half)rand();
    if (rand() % 8 == 0)
        header.e_phoff = (Elf64_Off)rand() << (rand() % 40);
    memcpy(data, &header, sizeof(header));
    for (size_t n = 0; n < count; n++) {
        Elf64_Phdr segment = {.p_type = rand() % 10 ? PT_LOAD : PT_INTERP, .p_offset = (Elf64_Off)(rand() % 3000)};

        segment.p_filesz = rand() % 8 ? (Elf64_Xword)(rand() % 100) : (Elf64_Xword)rand() << (rand() % 40);
        memcpy(data + sizeof(header) + n * sizeof(segment), &segment, sizeof(segment));
    }
    size = sizeof(header) + count * sizeof(Elf64_Phdr) + (size_t)rand() % 1000;
    hold(size <= room, "room");
    return (size_t)(rand() % 8 ? size : (size_t)rand() % size);
}
#endif
