/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The ELF interpreter that was used last: nearly all programs of a guest have the same.
 */
#ifndef DD_TRACER_EXEC_INTERPRETER_H
#define DD_TRACER_EXEC_INTERPRETER_H

#include <stdbool.h>

struct call;
struct exec_file;

/* Whether the interpreter of this name is still the one that was remembered, and may be executed by the caller. Then
 * `file` has a host path that leads there, and no descriptor. */
bool exec_interpreter_remembered(const struct call *call, const char *name, struct exec_file *file);

/* Remembers an interpreter that was found good. Its descriptor may be taken. */
void exec_interpreter_remember(const struct call *call, const char *name, struct exec_file *file);

#endif
