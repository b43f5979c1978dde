/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A file that execve opens: the program, a script's interpreter, an ELF interpreter.
 */
#ifndef DD_TRACER_EXEC_FILE_H
#define DD_TRACER_EXEC_FILE_H

#include <stdbool.h>

#include "call.h"
#include "elf_image.h"
#include "shebang.h"

#define HEAD_SIZE 1024

struct exec_file {
    int descriptor;             /* open for reading, the tracer's */
    bool by_descriptor;         /* no path leads to it: the loader opens it through the descriptor */
    bool by_other;              /* the caller is another user than the tracer */
    char host[DD_PATH_BUFFER];  /* else: its path */
    char guest[DD_PATH_BUFFER]; /* as /proc/PID/exe says it */
    size_t name_length;         /* of its last component, without " (deleted)" */
    char head[HEAD_SIZE];       /* its first bytes, zeroes behind: the shebang, and the headers of most programs */
    size_t head_size;
};

/* Opens a file as the kernel's do_open_execat does for the caller: 0, or the -errno that execve would give. To be
 * closed by exec_file_close. The path is in guest terms; dirfd_argument and mode as in call_resolve. */
int exec_file_open(const struct call *call, int dirfd_argument, const char *path, enum dd_mode mode,
                   struct exec_file *file);

/* The same for what a descriptor (or AT_FDCWD) of the caller names. */
int exec_file_open_descriptor(const struct call *call, int descriptor, struct exec_file *file);

/* True: nobody has the file of this descriptor open for writing. False: that cannot be told. */
bool exec_file_has_no_writer(int descriptor);

/* Its bytes, for elf_image.c. */
struct elf_source exec_file_source(const struct exec_file *file);

void exec_file_close(struct exec_file *file);

#endif
