/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One line at a process's end, where PROOT_FP_STATS asks for it: how many calls were answered here, or why none.
 *
 * Rules of this file
 *  - Counts are not exact where threads count at once: exact ones would cost more than the call.
 */
#include "library.h"

#include <string.h>
#include <sys/syscall.h>

#include "text.h"

static char *put(char *to, const char *text, size_t most) {
    size_t length = strnlen(text, most);

    memcpy(to, text, length);
    return to + length;
}

__attribute__((destructor)) static void tell(void) {
    char line[256], *end = line;

    if (!fast.tells)
        return;
    end = put(end, "fastpath[", 16);
    end = put_decimal(end, (unsigned long)raw_call(SYS_getpid, 0, 0, 0, 0, 0));
    end = put(end, "] ", 2);
    if (fast.state == FAST_ON) {
        end = put(end, info()->comm, sizeof(info()->comm));
        end = put(end, ": ", 2);
        end = put_decimal(end, fast.hits);
        end = put(end, " fast, ", 16);
        end = put_decimal(end, fast.misses);
        end = put(end, " to the tracer\n", 16);
    } else {
        end = put(end, "off: ", 8);
        end = put(end, fast.why_off, 128);
        end = put(end, "\n", 1);
    }
    raw_call(SYS_write, 2, (long)line, end - line, 0, 0);
}
