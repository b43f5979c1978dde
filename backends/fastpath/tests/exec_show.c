/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A program that says how it was started, in words that do not depend on addresses, process ids or on who started it:
 * what it prints natively and under the tracer is to be equal. Built in many shapes (static, static-pie, PIE, not PIE,
 * ...).
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../abi.h"

extern char **environ;
extern char __executable_start[] __attribute__((weak));

static unsigned char zeroes[100000]; /* bss beyond the file's last page */
static int initialised = 7;
static const char *first_argument;

int main(int argc, char **argv);

#define SHOWN 6 /* strings of a long vector, from each end */

static void show_strings(const char *what, char **strings) {
    size_t count = 0, bytes = 0;

    while (strings[count])
        bytes += strlen(strings[count++]);
    printf("%s: %zu, %zu bytes\n", what, count, bytes);
    for (size_t n = 0; n < count; n++)
        if (n < SHOWN || n + SHOWN >= count)
            printf("  %zu [%.300s]\n", n, strings[n]);
}

static size_t read_file(const char *path, char *text, size_t size) {
    int file = open(path, O_RDONLY);
    size_t length = 0;
    ssize_t got;

    while (file >= 0 && length < size - 1 && (got = read(file, text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    if (file >= 0)
        close(file);
    return length;
}

static void show_proc(void) {
    static char text[4 << 20];
    char exe[PATH_MAX];
    size_t length = read_file("/proc/self/cmdline", text, sizeof(text));
    size_t zeros = 0;
    ssize_t got;

    for (size_t n = 0; n < length; n++) {
        zeros += !text[n];
        if (!text[n])
            text[n] = '|';
    }
    printf("cmdline: %zu strings, %zu bytes [%.400s]\n", zeros, length, text);
    read_file("/proc/self/comm", text, sizeof(text));
    printf("comm: [%s]\n", strtok(text, "\n"));
    prctl(PR_GET_NAME, text);
    printf("name: [%s]\n", text);
    got = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[got < 0 ? 0 : got] = '\0';
    printf("exe: [%s]\n", exe);
}

static int compare(const void *a, const void *b) {
    unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

    return x < y ? -1 : x > y;
}

/* The entries by type; of the values those that say something of the program and not of the machine. */
static void show_auxiliary(char **variables) {
    unsigned long types[64];
    size_t count = 0;
    bool ours = false;

    while (*variables)
        variables++;
    for (const ElfW(auxv_t) *entry = (const ElfW(auxv_t) *)(variables + 1); entry->a_type != AT_NULL; entry++) {
        if (entry->a_type == AT_DROIDDECK) {
            const struct dd_info *info = (const struct dd_info *)entry->a_un.a_val;

            ours = info->magic == DD_INFO_MAGIC && info->abi_version == DD_ABI_VERSION;
            continue;
        }
        types[count++] = entry->a_type;
    }
    qsort(types, count, sizeof(*types), compare);
    printf("auxv:");
    for (size_t n = 0; n < count; n++)
        printf(" %lu", types[n]);
    printf("\n");
    printf("execfn: [%s]\n", (const char *)getauxval(AT_EXECFN));
    printf("secure: %lu, page size %lu, clock %lu, flags %lu\n", getauxval(AT_SECURE), getauxval(AT_PAGESZ),
           getauxval(AT_CLKTCK), getauxval(AT_FLAGS));
    fprintf(stderr, "droiddeck: %s\n", ours ? "yes" : "no"); /* the one thing that differs */
}

/* Does procfs say the same of this process as its own stack? */
static void show_noted(char **variables) {
    static char noted[8192], text[8192];
    size_t size = read_file("/proc/self/auxv", noted, sizeof(noted)), count = 0;
    unsigned long fields[60] = {0};
    const char *rest;

    while (*variables)
        variables++;
    while (count < size && memcmp(noted + count, (char *)(variables + 1) + count, 16) == 0)
        count += 16;
    printf("noted auxv: %s\n", count >= 16 && !*(unsigned long *)(void *)(noted + count - 16) ? "same" : "differs");
    read_file("/proc/self/stat", text, sizeof(text));
    rest = strrchr(text, ')') + 2;
    for (size_t n = 3; n < 53 && rest; n++, rest = strchr(rest, ' ') ? strchr(rest, ' ') + 1 : NULL)
        fields[n] = strtoul(rest, NULL, 10);
    printf("noted code: %d, data: %d, arguments: %d, environment: %d\n",
           (uintptr_t)main >= fields[26] && (uintptr_t)main < fields[27],
           (uintptr_t)&initialised >= fields[45] && (uintptr_t)&initialised < fields[46],
           fields[48] == (uintptr_t)first_argument, fields[50] == (uintptr_t)environ[0]);
    printf("noted sizes: code %lu, data %lu, arguments %lu, environment %lu\n", fields[27] - fields[26],
           fields[46] - fields[45], fields[49] - fields[48], fields[51] - fields[50]);
}

/* Do AT_PHDR, AT_ENTRY and AT_BASE describe this program? */
static void show_image(void) {
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    size_t count = getauxval(AT_PHNUM), loads = 0;
    uintptr_t bias = 0, self = (uintptr_t)&initialised;
    bool interpreted = false, covered = false;

    for (size_t n = 0; n < count; n++)
        if (headers[n].p_type == PT_PHDR)
            bias = (uintptr_t)headers - headers[n].p_vaddr;
    for (size_t n = 0; n < count; n++) {
        uintptr_t start = bias + headers[n].p_vaddr;

        loads += headers[n].p_type == PT_LOAD;
        interpreted = interpreted || headers[n].p_type == PT_INTERP;
        covered = covered || (headers[n].p_type == PT_LOAD && self - start < headers[n].p_memsz);
    }
    printf("headers: %zu of %lu bytes, %zu loads, interpreted %d, base %d\n", count, getauxval(AT_PHENT), loads,
           interpreted, getauxval(AT_BASE) != 0);
    if (bias || interpreted)
        printf("covers its data: %d\n", covered);
    printf("data: %d, bss zero: %d\n", initialised, memcmp(zeroes, zeroes + 1, sizeof(zeroes) - 1) == 0 && !zeroes[0]);
}

/* Heap and stack; and which kind of place the program and its libraries got. */
static void show_memory(void) {
    static char text[1 << 20];
    char *heap = sbrk(0);
    void *more = sbrk(4 << 20);
    char *line;

    memset(heap, 1, 4 << 20);
    printf("heap grows: %d\n", more == heap && sbrk(0) == heap + (4 << 20));
    read_file("/proc/self/maps", text, sizeof(text));
    printf("heap named: %d\n", strstr(text, "[heap]") != NULL);
    line = strstr(text, "[stack]");
    while (line > text && line[-1] != '\n')
        line--;
    printf("stack: %.4s\n", strchr(line, ' ') + 1);
    printf("place: %s\n", (uintptr_t)&initialised < 0x100000000ULL      ? "low"
                          : (uintptr_t)&initialised < 0x600000000000ULL ? "pie"
                                                                        : "mmap");
}

struct mapping {
    unsigned long start, end, offset;
    char permissions[8], padded_name[PATH_MAX];
    const char *name;
};

static void read_mapping(const char *line, struct mapping *mapping) {
    mapping->padded_name[0] = '\0';
    sscanf(line, "%lx-%lx %7s %lx %*s %*s%4095[^\n]", &mapping->start, &mapping->end, mapping->permissions,
           &mapping->offset, mapping->padded_name);
    mapping->name = mapping->padded_name + strspn(mapping->padded_name, " ");
}

/* The mappings of the image that has this address, and the nameless one behind them, from its lowest address on. */
static void show_layout(const char *what, uintptr_t within) {
    static char text[1 << 20];
    struct mapping mapping;
    char name[PATH_MAX] = "";
    unsigned long low = 0, last = 0;

    read_file("/proc/self/maps", text, sizeof(text));
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        read_mapping(line, &mapping);
        if (within >= mapping.start && within < mapping.end)
            strcpy(name, mapping.name);
    }
    printf("layout of %s:", what);
    for (const char *line = text; *line && name[0]; line = strchr(line, '\n') + 1) {
        read_mapping(line, &mapping);
        if (strcmp(mapping.name, name) != 0 && (mapping.name[0] || mapping.start != last))
            continue;
        low = last ? low : mapping.start;
        printf(" %lx-%lx %s %lx%s", mapping.start - low, mapping.end - low, mapping.permissions, mapping.offset,
               mapping.name[0] ? "" : " nameless");
        last = mapping.end;
    }
    printf("\n");
}

/* The kernel looks at the alignment of a program without interpreter since 6.10 only, our loader always. */
static bool is_aligned_by_kernel(void) {
    struct utsname kernel;
    unsigned major = 0, minor = 0;

    if (getauxval(AT_BASE) != 0)
        return true;
    return uname(&kernel) == 0 && sscanf(kernel.release, "%u.%u", &major, &minor) == 2 &&
           (major > 6 || (major == 6 && minor >= 10));
}

/* How far the program's place is from where its alignment wants it; its headers lie in its first page. */
static void show_alignment(void) {
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    uintptr_t page = getauxval(AT_PAGESZ), largest = 1, first = UINTPTR_MAX;

    for (size_t n = 0; n < getauxval(AT_PHNUM); n++) {
        if (headers[n].p_type != PT_LOAD)
            continue;
        if (headers[n].p_vaddr < first)
            first = headers[n].p_vaddr;
        if (headers[n].p_align > largest && (headers[n].p_align & (headers[n].p_align - 1)) == 0)
            largest = headers[n].p_align;
    }
    if (is_aligned_by_kernel())
        printf("alignment: %lx, off by %lx\n", largest,
               (((uintptr_t)headers & -page) - (first & -page)) & (largest - 1));
}

static void show_descriptors(void) {
    printf("descriptors:");
    for (int n = 0; n < 64; n++)
        if (fcntl(n, F_GETFD) >= 0)
            printf(" %d", n);
    printf("\n");
}

int main(int argc, char **argv) {
    first_argument = argv[0];
    printf("argc: %d\n", argc);
    show_strings("argv", argv);
    show_strings("environ", environ);
    show_proc();
    show_auxiliary(environ);
    show_noted(environ);
    show_image();
    show_layout("the program", (uintptr_t)&initialised);
    show_layout("its interpreter", getauxval(AT_BASE));
    show_alignment();
    show_memory();
    show_descriptors();
    fflush(stdout);
    return argc > 1 && strcmp(argv[1], "exit") == 0 ? atoi(argv[2]) : 0;
}
