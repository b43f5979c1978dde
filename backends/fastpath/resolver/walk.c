/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The walk from a guest path to a host path, component by component, as link_path_walk (fs/namei.c) goes.
 *
 * Rules of this file
 *  - One readlink per component says all: -EINVAL is "there and no link", and the kernel's own errno is the answer.
 *  - What the kernel will check itself when it gets the host path is not checked before: the last component of
 *    DD_NOFOLLOW and DD_PARENT, a directory that is only walked through, search permission of "x/."; so "/." and "/"
 *    stay in the host path.
 *  - ".." and a step onto a mount point do not reach the kernel: there "DIR/." is asked whether DIR is a directory and
 *    may be searched.
 *  - Inside of a mount, host and guest path end in the same text; so a step changes both alike, and only a mount
 *    point, ".." at a mount's root and an absolute link need the view.
 */
#include "walk.h"

#include "components.h"
#include "proc_links.h"
#include "sys.h"
#include "view.h"

#include <errno.h>
#include <string.h>

struct walk {
    const struct dd_view *view;
    const struct dd_process *process;
    struct dd_link_log *log;
    struct dd_result *at;
    const char *next; /* what is still to be walked: in the caller's path, or in at->work */
    bool cut_off;     /* its end is not all */
    size_t here_length; /* at the first step, dd_result's */
    bool at_base;     /* no step was made yet: the place may be a removed directory */
};

/* What a step says, unless it is -errno. */
enum { STEP_ON, STEP_DONE };

/* ---- places ------------------------------------------------------------------------------------------------------ */

static bool append(char *text, size_t *length, const char *more, size_t size) {
    if (size >= DD_PATH_BUFFER - *length - 4) /* room for "/.." to follow */
        return false;
    memcpy(text + *length, more, size);
    *length += size;
    text[*length] = '\0';
    return true;
}

static void cut(char *text, size_t *length, size_t to) {
    *length = to;
    text[to] = '\0';
}

static void enter_mount(const struct dd_view *view, int mount, struct dd_result *at) {
    const struct dd_bind *bind = &view->binds[mount];

    memcpy(at->host, bind->host, bind->host_length + 1);
    at->host_length = bind->host_length;
    at->mount = mount;
}

void dd_walk_at_root(const struct dd_view *view, struct dd_result *at) {
    int root = dd_view_mount_at(view, "", 0);

    at->outside = at->magic = false;
    cut(at->guest, &at->guest_length, 0);
    cut(at->host, &at->host_length, 0);
    at->mount = root;
    if (root >= 0)
        enter_mount(view, root, at);
}

/* Puts the walk at a host directory; its guest name follows from it. */
static void enter_host(const struct dd_view *view, struct dd_result *at) {
    int named;

    while (at->host_length > 0 && at->host[at->host_length - 1] == '/')
        cut(at->host, &at->host_length, at->host_length - 1);
    named = dd_view_locate(view, at->host, at->host_length, at->guest, &at->mount);
    at->outside = named < 0;
    at->magic = false;
    cut(at->guest, &at->guest_length, named < 0 ? 0 : (size_t)named);
}

static void go_outside(struct dd_result *at) {
    at->outside = true;
    at->magic = true;
    at->mount = -1;
    cut(at->guest, &at->guest_length, 0);
}

void dd_walk_at_base(const struct dd_view *view, const char *base_host, struct dd_result *at) {
    enum dd_proc_kind kind;
    pid_t pid;

    cut(at->host, &at->host_length, 0);
    append(at->host, &at->host_length, base_host, strlen(base_host));
    kind = dd_proc_kind(view, at->host, at->host_length, &pid);
    if (kind == DD_PROC_CWD || kind == DD_PROC_FD || kind == DD_PROC_ROOT)
        go_outside(at);
    else
        enter_host(view, at);
    at->caller_dependent = dd_proc_is_within(view, at->host, at->host_length);
}

/* That the place is a directory and may be searched. */
static int searchable(struct walk *walk) {
    struct dd_result *at = walk->at;
    char text[1];
    int error;

    memcpy(at->host + at->host_length, "/.", 3);
    error = dd_sys_readlink(at->host, text, sizeof text);
    at->host[at->host_length] = '\0';
    if (error >= 0 || error == -EINVAL || (error == -ENOENT && walk->at_base))
        return 0;
    return error;
}

static size_t parent_length(const char *text, size_t length) {
    while (length > 0 && text[length - 1] != '/')
        length--;
    return length > 0 ? length - 1 : 0;
}

/* "..": physical in guest terms, and nowhere from the guest's root. */
static int go_up(struct walk *walk) {
    struct dd_result *at = walk->at;
    const struct dd_bind *bind = at->mount >= 0 ? &walk->view->binds[at->mount] : NULL;
    int error = searchable(walk);

    if (error != 0)
        return error;
    walk->at_base = false;
    at->changed = true;
    at->up = true;
    if (at->outside)
        return append(at->host, &at->host_length, "/..", 3) ? 0 : -ENAMETOOLONG;
    if (at->guest_length == 0)
        return 0;
    if (bind != NULL && at->guest_length > bind->guest_length) {
        cut(at->host, &at->host_length, parent_length(at->host, at->host_length));
        cut(at->guest, &at->guest_length, parent_length(at->guest, at->guest_length));
        return 0;
    }
    cut(at->guest, &at->guest_length, parent_length(at->guest, at->guest_length));
    enter_mount(walk->view, walk->view->parent[at->mount], at);
    bind = &walk->view->binds[at->mount];
    return append(at->host, &at->host_length, at->guest + bind->guest_length, at->guest_length - bind->guest_length)
               ? 0
               : -ENAMETOOLONG;
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

#define PENDING_SIZE (DD_WORK_BUFFER - DD_LINK_TEXT - 1)

/* Puts the text at the start of the work area in front of what is still to be walked. Texts of nested links may be
 * longer together than there is room: the far end is cut off then, which matters only if the walk gets there. Most do
 * not: a link that leads through itself ends in ELOOP. */
static void put_in_front(struct walk *walk, size_t length) {
    char *end = walk->at->work.text + DD_WORK_BUFFER - 1;
    size_t rest = strlen(walk->next);

    if (rest > PENDING_SIZE - length) {
        rest = PENDING_SIZE - length;
        walk->cut_off = true;
    }
    memmove(end - rest, walk->next, rest);
    *end = '\0';
    walk->next = memcpy(end - rest - length, walk->at->work.text, length);
}

static int leave_to_kernel(struct walk *walk) {
    struct dd_result *at = walk->at;

    at->magic = true;
    at->name_length = at->host_length;
    return append(at->host, &at->host_length, walk->next, strlen(walk->next)) ? STEP_DONE : -ENAMETOOLONG;
}

/* The place is a link, whose text stands in the work area; host and guest name the directory where it lies with the
 * lengths given. */
static int follow(struct walk *walk, const struct dd_component *component, size_t length, size_t host_length,
                  size_t guest_length) {
    struct dd_result *at = walk->at;
    char *text = at->work.text;
    pid_t pid;
    enum dd_proc_kind kind = dd_proc_kind(walk->view, at->host, at->host_length, &pid);
    enum dd_jump jump = DD_JUMP_TEXT;

    at->changed = true;
    if (++at->links > DD_MAX_LINKS)
        return -ELOOP;
    if (walk->log != NULL)
        walk->log->link(walk->log, at->host, at->host_length, text, length);
    if (kind != DD_PROC_NONE) {
        at->caller_dependent = true;
        jump = dd_proc_follow(walk->process, kind, pid, component->last, text, DD_LINK_TEXT, &length);
    }
    switch (jump) {
    case DD_JUMP_REMOVED:
        if (!component->last && dd_take_up(&walk->next)) {
            int error = searchable(walk);
            if (error != 0)
                return error;
            at->up = true;
            length = dd_proc_above_removed(walk->view, text, length, at->guest);
            break;
        }
        /* fallthrough */
    case DD_JUMP_KERNEL:
        if (component->last)
            return leave_to_kernel(walk);
        go_outside(at);
        return STEP_ON;
    case DD_JUMP_HOST:
        cut(at->host, &at->host_length, 0);
        if (!append(at->host, &at->host_length, text, length))
            return -ENAMETOOLONG;
        enter_host(walk->view, at);
        return STEP_ON;
    case DD_JUMP_TEXT:
    default:
        break;
    }
    if (length == 0)
        return -ENOENT;
    put_in_front(walk, length);
    if (*walk->next == '/') {
        dd_walk_at_root(walk->view, at);
        return at->mount >= 0 ? STEP_ON : -ENOENT;
    }
    cut(at->host, &at->host_length, host_length);
    cut(at->guest, &at->guest_length, guest_length);
    return STEP_ON;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static int end_with(struct dd_result *at, const char *suffix) {
    at->name_length = at->host_length;
    append(at->host, &at->host_length, suffix, strlen(suffix)); /* cut left room for it */
    return STEP_DONE;
}

/* The last component is not looked up, or is there and no link, or is missing. */
static int end_at_name(struct dd_result *at, const struct dd_component *component) {
    return end_with(at, component->slash ? "/" : "");
}

static int step_onto_mount(struct walk *walk, const struct dd_component *component, enum dd_mode mode, int mount,
                           size_t host_length) {
    struct dd_result *at = walk->at;
    int error, directory = at->mount;

    cut(at->host, &at->host_length, host_length);
    if ((error = searchable(walk)) != 0)
        return error;
    walk->at_base = false;
    enter_mount(walk->view, mount, at);
    at->changed = true;
    if (!component->last)
        return STEP_ON;
    at->mount_point = true;
    if (mode == DD_PARENT)
        at->mount = directory;
    return end_at_name(at, component);
}

/* What readlink says of the name that was just added to a place of this length. */
static int read_name(const struct walk *walk, size_t place_length) {
    struct dd_result *at = walk->at;

    /* The short way does not ask whether the folders above may be searched: that it is no link is all it may say. */
    if (walk->here_length == place_length && place_length > 0 &&
        dd_sys_readlink(at->host + place_length + 1, at->work.text, DD_LINK_TEXT) == -EINVAL)
        return -EINVAL;
    return dd_sys_readlink(at->host, at->work.text, DD_LINK_TEXT);
}

static int step_onto_name(struct walk *walk, const struct dd_component *component, enum dd_mode mode) {
    struct dd_result *at = walk->at;
    size_t host_length = at->host_length, guest_length = at->guest_length;
    int mount = -1, found;
    pid_t pid;

    if (!append(at->host, &at->host_length, "/", 1) ||
        !append(at->host, &at->host_length, component->name, component->length))
        return -ENAMETOOLONG;
    if (!at->outside) {
        if (!append(at->guest, &at->guest_length, "/", 1) ||
            !append(at->guest, &at->guest_length, component->name, component->length))
            return -ENAMETOOLONG;
        mount = dd_view_mount_at(walk->view, at->guest, at->guest_length);
    }
    if (mount >= 0)
        return step_onto_mount(walk, component, mode, mount, host_length);
    walk->at_base = false;
    if (component->last && (mode == DD_PARENT || (mode == DD_NOFOLLOW && !component->slash)))
        return end_at_name(at, component);
    found = read_name(walk, host_length);
    if (found == -ENAMETOOLONG && dd_proc_kind(walk->view, at->host, at->host_length, &pid) != DD_PROC_NONE)
        found = 0; /* it is procfs that cannot tell a path as long as that (fs/proc/base.c, do_proc_readlink) */
    if (found >= 0)
        return found < DD_LINK_TEXT ? follow(walk, component, (size_t)found, host_length, guest_length) : -ENAMETOOLONG;
    if (found == -EINVAL)
        return component->last ? end_at_name(at, component) : STEP_ON;
    if (found != -ENOENT || !component->last)
        return found;
    at->missing = true;
    return end_at_name(at, component);
}

static int step(struct walk *walk, const struct dd_component *component, enum dd_mode mode) {
    int error;

    if (component->last && walk->cut_off)
        return -ENAMETOOLONG;
    if (component->length == 1 && component->name[0] == '.')
        return component->last ? end_with(walk->at, "/.") : STEP_ON;
    if (component->length != 2 || component->name[0] != '.' || component->name[1] != '.')
        return step_onto_name(walk, component, mode);
    if (component->last && mode == DD_PARENT) {
        walk->at->changed = true;
        return end_with(walk->at, "/..");
    }
    if ((error = go_up(walk)) != 0)
        return error;
    return component->last ? end_with(walk->at, "/") : STEP_ON;
}

int dd_walk(const struct dd_view *view, const struct dd_process *process, const char *path, enum dd_mode mode,
            struct dd_link_log *log, struct dd_result *at) {
    struct walk walk = {.view = view, .process = process, .log = log, .at = at, .next = path, .at_base = true};
    struct dd_component component;
    int taken = STEP_ON;

    walk.here_length = at->here_length;
    while (taken == STEP_ON && dd_take_component(&walk.next, &component)) {
        taken = step(&walk, &component, mode);
        walk.here_length = 0;
    }
    if (taken < 0)
        return taken;
    if (taken == STEP_ON && walk.cut_off)
        return -ENAMETOOLONG;
    if (taken == STEP_ON) /* nothing but slashes came */
        end_with(at, mode == DD_PARENT ? "/." : "");
    if (mode != DD_PARENT && !at->outside && !at->magic)
        at->mount_point = at->guest_length == view->binds[at->mount].guest_length;
    else if (mode == DD_PARENT && taken == STEP_ON)
        at->mount_point = true;
    if (at->host_length == 0)
        append(at->host, &at->host_length, "/", 1);
    if (dd_proc_is_within(view, at->host, at->name_length))
        at->caller_dependent = true;
    return 0;
}

int dd_resolve(const struct dd_view *view, const struct dd_process *process, const char *base_host, const char *path,
               enum dd_mode mode, struct dd_result *at) {
    int error;

    at->changed = at->magic = at->missing = at->mount_point = at->outside = at->caller_dependent = at->up = false;
    at->links = 0;
    at->name_length = at->here_length = 0;
    if (path[0] == '\0')
        return -ENOENT;
    if (memchr(path, '\0', PATH_MAX) == NULL || (base_host != NULL && strlen(base_host) >= DD_PATH_BUFFER - 4))
        return -ENAMETOOLONG;
    if (path[0] == '/')
        dd_walk_at_root(view, at);
    else if (base_host != NULL)
        dd_walk_at_base(view, base_host, at);
    if (path[0] == '/' ? at->mount < 0 : base_host == NULL)
        return -ENOENT;
    if ((error = dd_walk(view, process, path, mode, NULL, at)) != 0)
        return error;
    if (path[0] == '/')
        at->changed = strcmp(path, at->host) != 0;
    return 0;
}
