/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Scratch memory in the loader's slots: one map for all processes, since memory is held only between a seccomp stop and
 * its exit stop.
 *
 * Rules of this file
 *  - It is handed out in small units: a call may be blocked (an open of a FIFO), and thousands must be able to.
 *  - All guest processes have the slots at the same address, so that a unit's number is an address. Two threads must
 *    not hold one unit in one address space. The common case does not ask who shares what with whom: what is in use is
 *    in use everywhere.
 *  - Only when nothing is free does it ask: what is held in other address spaces only is free in this one (kcmp(2)).
 */
#define _GNU_SOURCE
#include "slots.h"

#include <linux/kcmp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracee.h"

enum { UNIT = 256, UNITS = (int)(DD_SLOT_COUNT * DD_SLOT_SIZE / UNIT), MOST_HOLDERS = 255 };

static unsigned char holders[UNITS]; /* how many threads hold a unit: more than one only in different address spaces */

static int find_run(const unsigned char *used, int count) {
    int run = 0;

    for (int unit = 0; unit < UNITS; unit++) {
        run = used[unit] != 0 ? 0 : run + 1;
        if (run == count)
            return unit - count + 1;
    }
    return -1;
}

struct question {
    const struct tracee *asks;
    unsigned char used[UNITS]; /* in its address space */
};

static void note_units(struct tracee *other, void *context) {
    struct question *question = context;

    if (other->unit_count == 0)
        return;
    long different = syscall(SYS_kcmp, question->asks->tid, other->tid, KCMP_VM, 0L, 0L);
    if (different > 0)
        return;
    for (int n = 0; n < other->unit_count; n++)
        question->used[other->unit + n] = 1;
}

static int find_run_here(const struct tracee *tracee, int count) {
    struct question question = {.asks = tracee};

    tracee_each(note_units, &question);
    for (int unit = 0; unit < UNITS; unit++)
        if (holders[unit] == MOST_HOLDERS)
            question.used[unit] = 1;
    return find_run(question.used, count);
}

uint64_t slots_take(struct tracee *tracee, size_t size) {
    int count = (int)((size + UNIT - 1) / UNIT);

    slots_free(tracee);
    if (size > SLOTS_SIZE)
        return 0;
    int unit = find_run(holders, count);
    if (unit < 0)
        unit = find_run_here(tracee, count);
    if (unit < 0)
        return 0;
    for (int n = 0; n < count; n++)
        holders[unit + n]++;
    tracee->unit = unit;
    tracee->unit_count = count;
    return slots_address(tracee);
}

uint64_t slots_address(const struct tracee *tracee) {
    return DD_SLOTS + (uint64_t)tracee->unit * UNIT;
}

void slots_free(struct tracee *tracee) {
    for (int n = 0; n < tracee->unit_count; n++)
        holders[tracee->unit + n]--;
    tracee->unit_count = 0;
}
