/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Links of procfs: what they say to a guest, and where they lead.
 *
 * Rules of this file
 *  - Only the host's own procfs at /proc counts; a folder of texts bound at the guest's /proc has links like any other.
 *  - The text of cwd, root and fd/N is trusted as a path only for guest processes, which share our mount namespace, and
 *    only while it is alive; else the kernel follows the link itself.
 *  - exe of a guest process is the loader to the kernel: only who started it knows the guest's name.
 */
#include "proc_links.h"

#include "sys.h"
#include "view.h"

#include <errno.h>
#include <string.h>

static const char deleted[] = " (deleted)"; /* fs/d_path.c */
#define DELETED_LENGTH (sizeof deleted - 1)

static bool begins(const char *text, const char *end, const char *with) {
    size_t length = strlen(with);

    return (size_t)(end - text) >= length && memcmp(text, with, length) == 0;
}

static bool is(const char *text, const char *end, const char *what) {
    return (size_t)(end - text) == strlen(what) && begins(text, end, what);
}

/* Reads "123/"; NULL if it is something else. */
static const char *after_number(const char *text, const char *end, pid_t *number) {
    const char *at = text;

    *number = 0;
    for (; at < end && *at >= '0' && *at <= '9' && *number < 100000000; at++)
        *number = *number * 10 + (*at - '0');
    return at > text && at < end && *at == '/' ? at + 1 : NULL;
}

bool dd_proc_is_within(const struct dd_view *view, const char *host, size_t length) {
    return !view->no_procfs && length >= 5 && memcmp(host, "/proc", 5) == 0 && (length == 5 || host[5] == '/');
}

enum dd_proc_kind dd_proc_kind(const struct dd_view *view, const char *host, size_t length, pid_t *pid) {
    static const struct {
        const char *name;
        enum dd_proc_kind kind;
        bool below; /* the links are in that directory */
    } links[] = {
        {"exe", DD_PROC_EXE, false}, {"cwd", DD_PROC_CWD, false}, {"root", DD_PROC_ROOT, false},
        {"fd/", DD_PROC_FD, true},   {"ns/", DD_PROC_OTHER, true}, {"map_files/", DD_PROC_OTHER, true},
    };
    const char *end = host + length, *name = host + 6, *task;

    *pid = 0;
    if (length <= 6 || !dd_proc_is_within(view, host, length))
        return DD_PROC_NONE;
    if (is(name, end, "self"))
        return DD_PROC_SELF;
    if (is(name, end, "thread-self"))
        return DD_PROC_THREAD_SELF;
    if ((name = after_number(name, end, pid)) == NULL)
        return DD_PROC_NONE;
    if (begins(name, end, "task/")) {
        if ((task = after_number(name + 5, end, pid)) == NULL)
            return DD_PROC_NONE;
        name = task;
    }
    for (size_t n = 0; n < sizeof links / sizeof links[0]; n++) {
        const char *rest = name + strlen(links[n].name);

        if (!begins(name, end, links[n].name))
            continue;
        if (links[n].below ? rest < end && memchr(rest, '/', (size_t)(end - rest)) == NULL : rest == end)
            return links[n].kind;
    }
    return DD_PROC_NONE;
}

static pid_t tgid_of(const struct dd_process *process) {
    if (process->tgid != 0 || process->tgid_of == NULL)
        return process->tgid;
    return process->tgid_of(process);
}

static size_t put_number(char *text, pid_t number) {
    char digits[16];
    size_t count = 0;

    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    for (size_t at = 0; at < count; at++)
        text[at] = digits[count - 1 - at];
    return count;
}

/* Text of /proc/self or thread-self; needs less than 48 bytes. */
static size_t put_self(const struct dd_process *process, enum dd_proc_kind kind, char *text) {
    size_t length = put_number(text, tgid_of(process));

    if (kind == DD_PROC_SELF)
        return length;
    memcpy(text + length, "/task/", 6);
    return length + 6 + put_number(text + length + 6, process->tid);
}

static int guest_exe(const struct dd_process *process, pid_t pid, char *text, size_t size) {
    return process->guest_exe != NULL ? process->guest_exe(process, pid, text, size) : -ESRCH;
}

/* text is not needed by the caller while this asks; it is clobbered. */
static bool is_guest(const struct dd_process *process, pid_t pid, char *scratch, size_t size) {
    return pid == process->tid || pid == tgid_of(process) || guest_exe(process, pid, scratch, size) > 0;
}

/* Whether a path that procfs tells is that of something removed: a file may also be called so, but a link is none. */
static bool is_removed(char *text, size_t length, size_t size) {
    char target[1];

    if (length < DELETED_LENGTH || memcmp(text + length - DELETED_LENGTH, deleted, DELETED_LENGTH) != 0)
        return false;
    if (length >= size)
        return true;
    text[length] = '\0';
    return dd_sys_readlink(text, target, sizeof target) != -EINVAL;
}

enum dd_jump dd_proc_follow(const struct dd_process *process, enum dd_proc_kind kind, pid_t pid, bool last, char *text,
                            size_t size, size_t *length) {
    size_t scratch = *length + 1; /* behind the text */
    int exe;

    switch (kind) {
    case DD_PROC_SELF:
    case DD_PROC_THREAD_SELF:
        if (size < 48)
            return DD_JUMP_KERNEL;
        *length = put_self(process, kind, text);
        return DD_JUMP_TEXT;
    case DD_PROC_EXE:
        if ((exe = guest_exe(process, pid, text, size)) <= 0)
            return DD_JUMP_KERNEL;
        *length = (size_t)exe;
        return DD_JUMP_TEXT;
    case DD_PROC_FD:
        if (last)
            return DD_JUMP_KERNEL;
        break;
    case DD_PROC_CWD:
    case DD_PROC_ROOT:
        break;
    case DD_PROC_OTHER:
        return DD_JUMP_KERNEL;
    case DD_PROC_NONE:
    default:
        return DD_JUMP_TEXT;
    }
    if (scratch >= size || !is_guest(process, pid, text + scratch, size - scratch))
        return DD_JUMP_KERNEL;
    if (kind == DD_PROC_ROOT) {
        text[0] = '/';
        *length = 1;
        return DD_JUMP_TEXT;
    }
    if (*length == 0 || text[0] != '/')
        return DD_JUMP_KERNEL;
    return is_removed(text, *length, size) ? DD_JUMP_REMOVED : DD_JUMP_HOST;
}

size_t dd_proc_above_removed(const struct dd_view *view, char *text, size_t length, char guest[DD_PATH_BUFFER]) {
    int named;

    while (length > 0 && text[--length] != '/')
        ;
    named = dd_guest_name(view, text, length, guest);
    if (named < 0 || (size_t)named + 2 >= DD_LINK_TEXT)
        return 0;
    memcpy(text, guest, (size_t)named);
    memcpy(text + named, "/.", 2); /* a directory, whatever comes */
    return (size_t)named + 2;
}

/* Guest text of a host path that procfs tells; of something removed the name keeps its mark. 0: no other text. */
static size_t put_guest_text(const struct dd_view *view, char *host, size_t length, size_t size, char *text) {
    size_t mark = is_removed(host, length, size) ? DELETED_LENGTH : 0;
    int named = dd_guest_name(view, host, length - mark, text);

    if (named < 0 || (size_t)named + 1 + mark > DD_PATH_BUFFER)
        return 0;
    if (named == 0)
        text[named++] = '/';
    memcpy(text + named, host + length - mark, mark);
    return (size_t)named + mark;
}

int dd_proc_link(const struct dd_view *view, const struct dd_process *process, const char *host,
                 struct dd_workspace *work, char text[DD_PATH_BUFFER]) {
    char *said = work->text;
    pid_t pid;
    enum dd_proc_kind kind = dd_proc_kind(view, host, strlen(host), &pid);
    int length = dd_sys_readlink(host, kind == DD_PROC_NONE ? text : said, DD_PATH_BUFFER - 1);
    size_t named = 0;
    int exe;

    if (length < 0 || kind == DD_PROC_NONE)
        return length;
    if (kind == DD_PROC_SELF || kind == DD_PROC_THREAD_SELF)
        return (int)put_self(process, kind, text);
    if (kind == DD_PROC_EXE && (exe = guest_exe(process, pid, text, DD_PATH_BUFFER)) >= 0)
        return exe > 0 && exe < PATH_MAX ? exe : -ENAMETOOLONG; /* d_path; "": so deep that the tracer has no name for it */
    if (kind == DD_PROC_ROOT && is_guest(process, pid, text, DD_PATH_BUFFER)) {
        text[0] = '/';
        return 1;
    }
    if (said[0] == '/')
        named = put_guest_text(view, said, (size_t)length, DD_PATH_BUFFER, text);
    if (named != 0)
        return (int)named;
    memcpy(text, said, (size_t)length);
    return length;
}
