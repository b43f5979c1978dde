/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How the tracer says that it cannot do its work: one line, and the status that env(1) uses for its own failures.
 */
#include "failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "options.h"

static void print(const char *format, va_list arguments) {
    fputs("droiddeck-tracer: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void say(const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    print(format, arguments);
    va_end(arguments);
}

void fail(const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    print(format, arguments);
    va_end(arguments);
    exit(EXIT_OWN_FAILURE);
}
