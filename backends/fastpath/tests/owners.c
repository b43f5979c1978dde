/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The tables of calls: prints "NUMBER ROWS OWNER" for each number below CALL_NUMBERS, and then the filter's length with
 * and without all that it can be asked for.
 */
#include <stdio.h>

#include "tracer/call_owner.h"
#include "tracer/filter.h"
#include "tracer/path_calls.h"

static struct filter filter;

static int rows_of(int number) {
    int rows = 0;

    for (size_t n = 0; n < call_owner_count; n++)
        rows += call_owners[n].number == number;
    for (size_t n = 0; n < path_call_count; n++)
        rows += path_calls[n].number == number;
    return rows;
}

int main(void) {
    for (int number = 0; number < CALL_NUMBERS; number++)
        printf("%d %d %d\n", number, rows_of(number), (int)call_owner(number, NULL));
    const struct filter_needs none = {0}, all = {.ids = true, .utsname = true, .fast_path = true, .listings = true};
    bool fits = filter_build(&filter, none);
    printf("filter %d %zu\n", fits, filter.length);
    fits = filter_build(&filter, all);
    printf("filter %d %zu\n", fits, filter.length);
    return 0;
}
