/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How the tracer says that it cannot do its work.
 */
#ifndef DD_TRACER_FAILURE_H
#define DD_TRACER_FAILURE_H

/* One line, "droiddeck-tracer: ...", on stderr. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, and the end of the process with EXIT_OWN_FAILURE. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
