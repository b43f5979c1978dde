/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What procfs says of the program.
 *
 * The kernel has noted the loader's own image. PR_SET_MM_MAP (prctl(2), CONFIG_CHECKPOINT_RESTORE) puts the program's
 * in place without any privilege; all fields go over at once, so those that are right already are given as they are.
 * Where the kernel lacks it, debuggers and crash reporters see the loader there; the program itself has the right
 * vector on its stack.
 */
#include "mm.h"

#include "auxv.h"
#include "system.h"

#include <elf.h>
#include <linux/prctl.h>

/* Entries of the vector with AT_NULL. */
static size_t auxiliary_count(const struct auxiliary *entries) {
    size_t count = 1;

    while (entries[count - 1].type != AT_NULL)
        count++;
    return count;
}

void tell_procfs(const struct image *program, uint64_t *stack, uintptr_t strings_end) {
    const uint64_t *arguments = stack + 1, *environment = stack + 1 + stack[0] + 1;
    struct auxiliary *entries = auxiliary_of(stack);
    uintptr_t heap = (uintptr_t)system_call(__NR_brk, 0, 0, 0, 0, 0, 0);
    uintptr_t environment_start = environment[0] ? environment[0] : strings_end;
    struct prctl_mm_map map = {
        .start_code = program->code_start,
        .end_code = program->code_end,
        .start_data = program->data_start,
        .end_data = program->data_end,
        .start_brk = heap,
        .brk = heap,
        .start_stack = (uintptr_t)stack,
        .arg_start = arguments[0] ? arguments[0] : environment_start,
        .arg_end = environment_start,
        .env_start = environment_start,
        .env_end = strings_end,
        .auxv = (void *)entries,
        .auxv_size = (uint32_t)(auxiliary_count(entries) * sizeof(*entries)),
        .exe_fd = (uint32_t)-1,
    };

    (void)system_call(__NR_prctl, PR_SET_MM, PR_SET_MM_MAP, (long)&map, sizeof(map), 0, 0);
}
