/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Mapping an ELF image as the kernel does (fs/binfmt_elf.c: load_elf_binary, load_elf_interp, elf_load, elf_map).
 *
 * Rules of this file
 *  - The same image gives the same mappings: the span of an ET_DYN is reserved by its first segment and the rest
 *    given back, later segments lie at fixed distances, what exceeds the file is zero and writable whatever the
 *    segment's flags say.
 *  - A wrong image ends as it does in the kernel past its point of no return (SIGSEGV); a file that is not there any
 *    more, or is no ELF any more, was replaced since the tracer looked and is named.
 *  - Nothing is mapped over the loader itself. The page from which calls are let through gives way to a program.
 */
#include "map.h"

#include "../abi.h"
#include "failure.h"
#include "system.h"

#include <elf.h>
#include <linux/mman.h>
#include <linux/random.h>

#define HEADERS_MAX 65536  /* bytes of program headers, load_elf_phdrs */
#define USUAL_HEADERS 1024 /* the ELF header and 17 program headers */
#define ADDRESS_MAX (1ULL << 56)
#define LOADER_END (DD_EPOCH_PAGE + 0x10000ULL)

#define PER_QUERY 0xffffffffUL        /* personality(2) */
#define ADDR_NO_RANDOMIZE 0x0040000UL /* linux/personality.h */

struct file {
    long descriptor;
    const char *path;
    const Elf64_Ehdr *header;
    const Elf64_Phdr *segments;
    size_t page_size;
};

static uintptr_t page_start(const struct file *file, uintptr_t address) {
    return address & ~(file->page_size - 1);
}

static uintptr_t page_end(const struct file *file, uintptr_t address) {
    return page_start(file, address + file->page_size - 1);
}

/* The loader's slots are free while it runs: room for headers that do not fit into the usual buffer. */
static void read_headers(struct file *file, void *buffer) {
    const Elf64_Ehdr *header = buffer;
    long got = system_pread(file->descriptor, buffer, USUAL_HEADERS, 0);
    size_t size;

    if (got < (long)sizeof(*header) || header->e_ident[0] != ELFMAG0 || header->e_ident[1] != ELFMAG1 ||
        header->e_ident[2] != ELFMAG2 || header->e_ident[3] != ELFMAG3 || header->e_machine != MACHINE ||
        header->e_phentsize != sizeof(Elf64_Phdr))
        fail("is not the program that it was when execve began", file->path);
    size = header->e_phnum * sizeof(Elf64_Phdr);
    file->header = header;
    file->segments = (const Elf64_Phdr *)((const char *)buffer + header->e_phoff);
    if (header->e_phoff % _Alignof(Elf64_Phdr) == 0 && header->e_phoff <= (size_t)got &&
        size <= (size_t)got - header->e_phoff)
        return;
    file->segments = (const Elf64_Phdr *)DD_SLOTS;
    if (size > HEADERS_MAX || system_pread(file->descriptor, (void *)DD_SLOTS, size, header->e_phoff) != (long)size)
        fail("is not the program that it was when execve began", file->path);
}

/* How far the segments reach, and whether some of that belongs to none of them. */
struct span {
    size_t size;
    bool has_holes;
};

static struct span whole_span(const struct file *file) {
    uintptr_t low = UINTPTR_MAX, high = 0;
    struct span span = {0, false};

    for (size_t i = 0; i < file->header->e_phnum; i++) {
        const Elf64_Phdr *segment = &file->segments[i];

        if (segment->p_type != PT_LOAD)
            continue;
        if (high && page_start(file, segment->p_vaddr) != page_end(file, high))
            span.has_holes = true;
        if (page_start(file, segment->p_vaddr) < low)
            low = page_start(file, segment->p_vaddr);
        if (segment->p_vaddr + segment->p_memsz > high)
            high = segment->p_vaddr + segment->p_memsz;
    }
    span.size = high > low ? high - low : 0;
    return span;
}

static size_t largest_alignment(const struct file *file) {
    size_t largest = file->page_size;

    for (size_t i = 0; i < file->header->e_phnum; i++) {
        const Elf64_Phdr *segment = &file->segments[i];

        if (segment->p_type == PT_LOAD && segment->p_align > largest &&
            (segment->p_align & (segment->p_align - 1)) == 0)
            largest = segment->p_align;
    }
    return largest;
}

static int protection_of(const Elf64_Phdr *segment) {
    return (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
           (segment->p_flags & PF_X ? PROT_EXEC : 0);
}

static bool overlaps(uintptr_t start, size_t size, uintptr_t low, uintptr_t high) {
    return start < high && start + size > low;
}

/* An image at fixed addresses may want a place of ours: the page gives way, the loader cannot. */
static void make_room(const struct file *file, uintptr_t start, size_t size) {
    struct dd_info *info = (struct dd_info *)DD_LOADER_INFO;

    if (start >= ADDRESS_MAX || size >= ADDRESS_MAX || overlaps(start, size, DD_LOADER_BASE, LOADER_END))
        fail_as_the_kernel();
    if (!info->key[0] || !overlaps(start, size, DD_PAGE, DD_PAGE + file->page_size))
        return;
    info->key[0] = '\0';
    (void)system_munmap(DD_PAGE, file->page_size);
}

/* elf_map: the file's part. `span`: what to reserve around it, for the first segment of an image; of size 0: nothing.
 * What is reserved is given back, as the kernel does, where the other segments would not cover it. */
static uintptr_t map_file_part(const struct file *file, const Elf64_Phdr *segment, uintptr_t address, int flags,
                               struct span span) {
    uintptr_t within = segment->p_vaddr & (file->page_size - 1);
    size_t size = page_end(file, segment->p_filesz + within);
    size_t reserved = span.size ? page_end(file, span.size) : size;
    uintptr_t start = page_start(file, address);
    long mapped;

    make_room(file, start, reserved);
    if (segment->p_offset < within || reserved < size)
        fail_as_the_kernel();
    mapped = system_mmap(start, reserved, protection_of(segment), MAP_PRIVATE | flags, file->descriptor,
                         segment->p_offset - within);
    if (is_error(mapped) || ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && (uintptr_t)mapped != start))
        fail_as_the_kernel();
    if (span.has_holes && reserved > size && is_error(system_munmap((uintptr_t)mapped + size, reserved - size)))
        fail_as_the_kernel();
    return (uintptr_t)mapped;
}

static void zero(uintptr_t from, uintptr_t to) {
    for (; from < to && from % sizeof(uint64_t); from++)
        *(volatile char *)from = 0;
    for (; from < to; from += sizeof(uint64_t)) /* `to` is the end of a page */
        *(volatile uint64_t *)from = 0;
}

/* elf_load: one segment with its zeroes; returns where its first page lies. */
static uintptr_t map_segment(const struct file *file, const Elf64_Phdr *segment, uintptr_t address, int flags,
                             struct span span) {
    uintptr_t within = segment->p_vaddr & (file->page_size - 1);
    uintptr_t start = page_start(file, address);
    uintptr_t zero_start, zero_end;
    int protection = protection_of(segment);

    if (segment->p_vaddr >= ADDRESS_MAX || segment->p_memsz >= ADDRESS_MAX || segment->p_filesz > segment->p_memsz)
        fail_as_the_kernel();
    if (segment->p_filesz)
        start = map_file_part(file, segment, address, flags, span);
    if (segment->p_memsz <= segment->p_filesz)
        return start;
    zero_start = segment->p_filesz ? start + within + segment->p_filesz : start;
    zero_end = page_end(file, start + within + segment->p_memsz);
    if (segment->p_filesz && (protection & PROT_WRITE))
        zero(zero_start, page_end(file, zero_start));
    zero_start = page_end(file, zero_start);
    if (zero_end > zero_start) {
        make_room(file, zero_start, zero_end - zero_start);
        if (is_error(system_mmap(zero_start, zero_end - zero_start, PROT_READ | PROT_WRITE | (protection & PROT_EXEC),
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)))
            fail_as_the_kernel();
    }
    return start;
}

/* Where a PIE that has an interpreter goes: the kernel's place for it, as random as there. 0: mmap chooses. */
static uintptr_t place_of_pie(void) {
    uint64_t pages = 0;

    if (!PIE_BASE)
        return 0;
    if (!(system_call(__NR_personality, (long)PER_QUERY, 0, 0, 0, 0, 0) & (long)ADDR_NO_RANDOMIZE))
        (void)system_call(__NR_getrandom, (long)&pages, sizeof(pages), GRND_NONBLOCK, 0, 0, 0);
    return PIE_BASE + ((pages & ((1ULL << PIE_RANDOM_BITS) - 1)) << 12);
}

/* A place whose alignment is larger than a page: one is found by mapping nothing, then the image goes to its aligned
 * start. */
static uintptr_t aligned_place(const struct file *file, size_t span, size_t alignment) {
    size_t size = page_end(file, span) + alignment;
    long found = system_mmap(0, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (is_error(found) || is_error(system_munmap((uintptr_t)found, size)))
        fail_as_the_kernel();
    return ((uintptr_t)found + alignment - 1) & ~(alignment - 1);
}

/* Segments of an image whose place is known need no reservation if they are near each other. */
#define NEAR (1ULL << 30)
static const struct span unreserved = {0, false};

static uintptr_t map_first(const struct file *file, const Elf64_Phdr *segment, enum image_kind kind) {
    struct span span = whole_span(file);
    size_t alignment = largest_alignment(file);
    uintptr_t place = 0;

    if (!span.size)
        fail_as_the_kernel();
    if (file->header->e_type != ET_DYN)
        return map_segment(file, segment, segment->p_vaddr, MAP_FIXED_NOREPLACE, unreserved), 0;
    if (kind == INTERPRETED_PROGRAM)
        place = place_of_pie() & ~(alignment - 1);
    if (!place && kind != INTERPRETER && alignment > file->page_size)
        place = aligned_place(file, span.size, alignment);
    if (!place)
        place = map_segment(file, segment, 0, 0, span);
    else
        place = map_segment(file, segment, place, MAP_FIXED_NOREPLACE, span.size < NEAR ? unreserved : span);
    return place - page_start(file, segment->p_vaddr);
}

/* What the kernel notes in struct mm_struct (load_elf_binary); addresses without the bias. */
static void note_range(const Elf64_Phdr *segment, struct image *image) {
    uintptr_t start = segment->p_vaddr, end = segment->p_vaddr + segment->p_filesz;

    if ((segment->p_flags & PF_X) && start < image->code_start)
        image->code_start = start;
    if ((segment->p_flags & PF_X) && end > image->code_end)
        image->code_end = end;
    if (start > image->data_start)
        image->data_start = start;
    if (end > image->data_end)
        image->data_end = end;
}

static void map_segments(const struct file *file, enum image_kind kind, struct image *image) {
    bool first = true;

    for (size_t i = 0; i < file->header->e_phnum; i++) {
        const Elf64_Phdr *segment = &file->segments[i];

        if (segment->p_type == PT_GNU_STACK)
            image->executable_stack = segment->p_flags & PF_X;
        if (segment->p_type != PT_LOAD)
            continue;
        if (first)
            image->bias = map_first(file, segment, kind);
        else
            (void)map_segment(file, segment, image->bias + segment->p_vaddr, MAP_FIXED, unreserved);
        first = false;
        note_range(segment, image);
        if (segment->p_offset <= file->header->e_phoff && file->header->e_phoff < segment->p_offset + segment->p_filesz)
            image->headers = file->header->e_phoff - segment->p_offset + segment->p_vaddr;
    }
    if (first)
        fail_as_the_kernel();
}

void map_image(const char *path, enum image_kind kind, size_t page_size, struct image *image) {
    char buffer[USUAL_HEADERS] __attribute__((aligned(16)));
    struct file file = {.path = path, .page_size = page_size};

    file.descriptor = system_open(path, O_RDONLY | O_CLOEXEC);
    if (is_error(file.descriptor))
        fail("cannot be opened any more", path);
    read_headers(&file, buffer);
    *image = (struct image){.code_start = UINTPTR_MAX};
    map_segments(&file, kind, image);
    image->headers += image->bias;
    image->code_start += image->bias;
    image->code_end += image->bias;
    image->data_start += image->bias;
    image->data_end += image->bias;
    image->header_count = file.header->e_phnum;
    image->entry = image->bias + file.header->e_entry;
    (void)system_close(file.descriptor);
}
