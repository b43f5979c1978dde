/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The loader: what the kernel execs in place of every guest program. It maps the program and its interpreter, which the
 * tracer has looked up and checked, and starts them as the kernel would have.
 *
 * Rules of this file
 *  - Freestanding, no variables: it has the stack, and struct dd_info that the tracer wrote at PTRACE_EVENT_EXEC.
 *  - Its calls are not traced (the filter lets DD_LOADER_TEXT pass): all paths are the host's.
 *  - Nothing is left open, and nothing is left mapped but what abi.h names.
 */
#include "../abi.h"
#include "auxv.h"
#include "failure.h"
#include "map.h"
#include "mm.h"
#include "system.h"

#include <elf.h>
#include <linux/mman.h>
#include <linux/prctl.h>

/* Where to go on, in the two registers that return it. */
struct start {
    uint64_t entry;
    uint64_t *stack;
};

/* Entry from start_<machine>.S. */
struct start dd_load(uint64_t *stack);

extern char _start[];

static struct dd_info *info_of_this_process(void) {
    struct dd_info *info = (struct dd_info *)DD_LOADER_INFO;

    if ((uintptr_t)_start != DD_LOADER_TEXT)
        fail("is built for another address", "");
    if (info->magic != DD_INFO_MAGIC)
        fail("is started by droiddeck-tracer only", "");
    if (info->abi_version != DD_ABI_VERSION)
        fail("does not fit the droiddeck-tracer that runs", "");
    return info;
}

/* The epoch page and the session's behind it. Without the first a cache would not hear of others' changes, without the
 * second there is nothing to resolve by: then the fast path is off. */
static void map_epoch(struct dd_info *info, size_t page_size) {
    long file, mapped;

    if (!info->epoch_at)
        return;
    file = system_open(info->pool + info->epoch_at, O_RDWR | O_CLOEXEC);
    mapped = system_mmap(DD_EPOCH_PAGE, page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    if (!is_error(mapped))
        mapped = system_mmap(DD_SESSION, DD_SESSION_SIZE, PROT_READ, MAP_SHARED | MAP_FIXED, file, DD_EPOCH_SIZE);
    if (is_error(mapped)) {
        info->epoch_at = 0;
        info->key[0] = '\0';
    }
    (void)system_close(file);
}

/* The kernel makes a whole stack executable; where it ends is known by the last string on it, which AT_EXECFN names
 * (only one word comes after that, create_elf_tables). */
static void make_stack_executable(const uint64_t *stack, const char *last_string, size_t page_size) {
    uintptr_t start = (uintptr_t)stack & ~(page_size - 1);
    uintptr_t end = (uintptr_t)last_string;

    while (*(const char *)end)
        end++;
    end = (end + sizeof(uint64_t) + page_size) & ~(page_size - 1);
    (void)system_mprotect(start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC | PROT_GROWSDOWN);
}

/* The program's own values in place of the loader's. */
static uint64_t *describe(uint64_t *stack, const struct dd_info *info, const struct image *program,
                          const struct image *interpreter) {
    struct auxiliary *entries = auxiliary_of(stack);

    auxiliary_set(entries, AT_PHDR, program->headers);
    auxiliary_set(entries, AT_PHENT, sizeof(Elf64_Phdr));
    auxiliary_set(entries, AT_PHNUM, program->header_count);
    auxiliary_set(entries, AT_ENTRY, program->entry);
    auxiliary_set(entries, AT_BASE, interpreter->bias);
    if (info->has_ids) {
        auxiliary_set(entries, AT_UID, info->uid);
        auxiliary_set(entries, AT_EUID, info->euid);
        auxiliary_set(entries, AT_GID, info->gid);
        auxiliary_set(entries, AT_EGID, info->egid);
    }
    auxiliary_set(entries, AT_EXECFN, (uintptr_t)(info->pool + info->execfn_at));
    return auxiliary_add(stack, AT_DROIDDECK, DD_LOADER_INFO);
}

struct start dd_load(uint64_t *stack) {
    struct dd_info *info = info_of_this_process();
    const struct auxiliary *entries = auxiliary_of(stack);
    size_t page_size = auxiliary_value(entries, AT_PAGESZ);
    uintptr_t strings_end = auxiliary_value(entries, AT_EXECFN);
    struct image program, interpreter;

    map_epoch(info, page_size);
    if (info->interpreter_at) {
        map_image(info->pool + info->program_at, INTERPRETED_PROGRAM, page_size, &program);
        map_image(info->pool + info->interpreter_at, INTERPRETER, page_size, &interpreter);
    } else {
        map_image(info->pool + info->program_at, PROGRAM, page_size, &program);
        interpreter = (struct image){.entry = program.entry};
    }
    if (program.executable_stack)
        make_stack_executable(stack, (const char *)strings_end, page_size);
    stack = describe(stack, info, &program, &interpreter);
    tell_procfs(&program, stack, strings_end);
    (void)system_prctl(PR_SET_NAME, (uintptr_t)info->comm);
    return (struct start){.entry = interpreter.entry, .stack = stack};
}
