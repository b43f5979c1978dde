/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The resolver: guest path -> host path and back, with the semantics of a mount namespace that has the same binds.
 *
 * Rules of this file
 *  - No allocation, no locks, no globals, no libc but string functions: async-signal-safe, shared by tracer and
 *    library.
 *  - What it asks of the system goes through sys.h, with the rights of whoever runs it.
 *  - Buffers are the caller's (struct dd_result holds the work area too); the resolver's own stack stays below 1 KiB.
 *  - Host paths are canonical inside: no links, no "." or "..", "" for the root.
 */
#ifndef DD_RESOLVER_H
#define DD_RESOLVER_H

#include <linux/limits.h> /* PATH_MAX */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h> /* pid_t */

#define DD_MAX_BINDS 512
#define DD_BIND_SLOTS 1024 /* hash slots, a power of two above DD_MAX_BINDS */
#define DD_VIEW_TEXT (192 * 1024)
#define DD_MAX_LINKS 40 /* MAXSYMLINKS, linux/namei.h */

/* A host path may be longer than PATH_MAX (root's own name in front). Whoever has little stack builds with less; paths
 * that do not fit are then -ENAMETOOLONG. */
#ifndef DD_PATH_BUFFER
#define DD_PATH_BUFFER (2 * PATH_MAX)
#endif
#define DD_LINK_TEXT (DD_PATH_BUFFER / 2) /* a link's text, PATH_MAX as a rule */
#define DD_WORK_BUFFER (2 * DD_PATH_BUFFER)

/* ---- the view: which host file lies at which guest path ---------------------------------------------------------- */

struct dd_bind {
    const char *host;  /* "" is the host's root */
    const char *guest; /* "" is the guest's root */
    size_t host_length, guest_length;
};

/* Which of many binds a name belongs to, without looking at each: a bit per hash of last components, then a hash
 * table. */
struct dd_bind_index {
    uint64_t filter[64];
    uint16_t slots[DD_BIND_SLOTS]; /* bind number + 1; 0: free */
};

/* Pointers into text: a view is set up in place and not copied. */
struct dd_view {
    size_t count;
    struct dd_bind binds[DD_MAX_BINDS]; /* after dd_view_finish: longest guest first, so the root is last */
    uint16_t parent[DD_MAX_BINDS];      /* the bind in which the mount point lies */
    uint16_t same_host[DD_MAX_BINDS];   /* next bind of the same host file, number + 1, shortest guest path first */
    struct dd_bind_index by_guest, by_host;
    bool no_procfs; /* set by the caller if the host's /proc is no procfs (statfs) */
    size_t text_used;
    char text[DD_VIEW_TEXT];
};

/* One more bind. host is canonical (realpath). guest is a guest path without links, "." or "..": where a bind's guest
 * path may have links, take .guest of dd_resolve(DD_FOLLOW) on the view so far, parents first, as mount(8) would. The
 * last of equal guests wins. A zeroed struct dd_view is empty; binds may be added after dd_view_finish, which is then
 * due again. 0, -E2BIG (too many, too much text), -ENAMETOOLONG, -EINVAL (not absolute, or not in canonical form). */
int dd_view_add(struct dd_view *view, const char *host, const char *guest);

/* Sorts and indexes. Without a bind of the guest root every absolute path is -ENOENT. */
void dd_view_finish(struct dd_view *view);

/* The bind whose mount point is exactly this guest path, or -1. Does not depend on the number of binds. */
int dd_view_mount_at(const struct dd_view *view, const char *guest, size_t length);

/* ---- guest -> host ----------------------------------------------------------------------------------------------- */

enum dd_mode {
    DD_FOLLOW,   /* a link in the last component is followed (stat, open, chdir) */
    DD_NOFOLLOW, /* it is not (lstat, readlink, O_NOFOLLOW, AT_SYMLINK_NOFOLLOW), unless a slash comes after it */
    DD_PARENT,   /* only the directory is looked up: calls that make, remove or rename an entry, and O_CREAT|O_EXCL.
                    O_CREAT with a trailing slash too, for the kernel refuses it before it follows anything. Not O_PATH:
                    the kernel ignores O_CREAT then. */
};

/* Who asks: what /proc/self, exe and root mean. */
struct dd_process {
    pid_t tid;
    pid_t tgid;                                           /* 0: ask tgid_of */
    pid_t (*tgid_of)(const struct dd_process *process);   /* may be NULL if tgid is set */
    /* Guest path of a guest process's executable (pid may be a thread's): its length, or negative if it is no guest
     * process. NULL: nobody is. */
    int (*guest_exe)(const struct dd_process *process, pid_t pid, char *buffer, size_t size);
    void *context;
};

struct dd_workspace {
    char text[DD_WORK_BUFFER]; /* at its start the text of a link just read, at its end what is still to be walked */
};

struct dd_result {
    char host[DD_PATH_BUFFER];  /* what to give to the kernel instead of the path */
    char guest[DD_PATH_BUFFER]; /* canonical guest path, "" for the root; of the link itself if magic, "" if outside */
    size_t host_length;         /* of host as it stands, a final "/", "/." or "/.." included; may reach beyond PATH_MAX:
                                   then dd_host_parent (sys.h) or a relative call */
    size_t name_length;         /* of the canonical name in host, without those; of the link if magic; 0: "/" */
    size_t guest_length;
    int mount;        /* number of the bind in which the file lies; DD_PARENT: its directory. rename and link between
                         two numbers are -EXDEV. -1: outside */
    bool changed;     /* the kernel's own walk of the text may differ; if not, leave the caller's argument alone */
    bool magic;       /* host goes through a procfs link that only the kernel can follow (a pipe, a deleted file) */
    bool missing;     /* DD_FOLLOW: there is no such file, but there is its directory (to be created in) */
    bool mount_point; /* the name is a mount point: a call that would make, remove or rename it is EEXIST, EBUSY, ... */
    bool outside;     /* no bind shows this file: reached through a descriptor or /proc. As in the kernel the walk went
                         on there; ".." stays in host and absolute links start at the guest's root */
    unsigned links;   /* links followed; with caller_dependent and up: what a cache must know */
    bool caller_dependent; /* went through procfs, where names mean something else to others and later */
    bool up;               /* passed ".." */
    size_t here_length;    /* dir_cache.c: the walk starts at this process's own working directory; 0: it does not */
    struct dd_workspace work;
};

/* 0 or -errno, as the kernel answers the lookup. host, flags and the call's own flags together give the kernel's
 * answer to the call: the last component is left to the kernel as far as it can be, trailing "/", "/." and
 * (DD_PARENT) "/..".
 *
 * base_host: directory a relative path starts at, as readlink of /proc/TID/cwd or fd/N gives it; not used for absolute
 * paths. " (deleted)" at its end is understood. Where that text cannot be had or used (longer than PATH_MAX,
 * unsearchable parents) give "/proc/TID/cwd" or "/proc/TID/fd/N" itself: then the result is outside, and the walk is
 * still exact but for mount points. NULL or no path at all: -ENOENT if relative.
 *
 * The empty path is -ENOENT; AT_EMPTY_PATH is the caller's. Where the kernel would go on, -ENAMETOOLONG is the answer
 * when a canonical path exceeds DD_PATH_BUFFER, or if the walk gets as far as a text of nested links that exceeded
 * DD_WORK_BUFFER (three times PATH_MAX and a link). fs.protected_symlinks is not looked at. Host paths are used with
 * the rights of whoever asks: the folders above a bind's host path must be searchable to them, which a mount does not
 * need. */
int dd_resolve(const struct dd_view *view, const struct dd_process *process, const char *base_host, const char *path,
               enum dd_mode mode, struct dd_result *result);

/* ---- host -> guest ----------------------------------------------------------------------------------------------- */

/* Guest name of a canonical host path: of the binds with the longest host prefix (then the shortest guest path) the
 * first that leads back to this host path, i.e. is not covered by another mount. Length (0: the guest's root, text
 * "") or -1: no bind shows it. */
int dd_guest_name(const struct dd_view *view, const char *host, size_t length, char guest[DD_PATH_BUFFER]);

/* ---- procfs links ------------------------------------------------------------------------------------------------ */

/* What readlink says to a guest about the link at this host path (dd_resolve with DD_NOFOLLOW): length of the text,
 * which is not cut to the guest's buffer and not NUL-terminated, or -errno (-EINVAL: no link). Outside of procfs that
 * is the link's own text. host may be a dd_result's and work that result's. */
int dd_proc_link(const struct dd_view *view, const struct dd_process *process, const char *host,
                 struct dd_workspace *work, char text[DD_PATH_BUFFER]);

#endif
