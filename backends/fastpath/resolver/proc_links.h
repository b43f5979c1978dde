/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Links of procfs, for the walk: which there are and where following one leads.
 */
#ifndef DD_PROC_LINKS_H
#define DD_PROC_LINKS_H

#include "resolver.h"

enum dd_proc_kind {
    DD_PROC_NONE, /* no link of procfs whose text misleads */
    DD_PROC_SELF,
    DD_PROC_THREAD_SELF,
    DD_PROC_EXE,
    DD_PROC_CWD,
    DD_PROC_ROOT,
    DD_PROC_FD,
    DD_PROC_OTHER /* ns, map_files: the text is only a description */
};

enum dd_jump {
    DD_JUMP_TEXT,   /* go on with the text, in guest terms, as with any link */
    DD_JUMP_HOST,   /* the text is the host path of the directory or file that it leads to */
    DD_JUMP_REMOVED, /* the text is the host path that a removed directory had, and a mark; else as the next one */
    DD_JUMP_KERNEL, /* only the kernel can follow it; the link's own path stands for what is behind it */
};

/* What the host path is, and of which process. */
enum dd_proc_kind dd_proc_kind(const struct dd_view *view, const char *host, size_t length, pid_t *pid);

/* The host path is under procfs: what names in it mean depends on who asks and when. */
bool dd_proc_is_within(const struct dd_view *view, const char *host, size_t length);

/* Where following the link of that kind leads. text holds what readlink said (*length bytes, size available) and is
 * replaced where it means something else to the guest; `last`: nothing is to be looked up below it. */
enum dd_jump dd_proc_follow(const struct dd_process *process, enum dd_proc_kind kind, pid_t pid, bool last, char *text,
                            size_t size, size_t *length);

/* ".." of a removed directory, in guest terms: what was above it may be removed too, and links stand there now. text is
 * what DD_JUMP_REMOVED left. The new length, 0 where no bind shows it. */
size_t dd_proc_above_removed(const struct dd_view *view, char *text, size_t length, char guest[DD_PATH_BUFFER]);

#endif
