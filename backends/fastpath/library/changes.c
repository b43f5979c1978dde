/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Calls that make, remove, rename or mark files.
 *
 * Rules of this file
 *  - Never on a remembered text: the directory is opened without following any link (a descriptor for the length of the
 *    call, close-on-exec), and the call is made in it; a file whose marks change is opened itself. So a change goes
 *    where the guest's path leads, or to the tracer.
 *  - The epoch is raised before and after whatever changes where names lead.
 *  - To the tracer go: names that may be mount points, two different mounts, folders that are renamed or removed (it
 *    holds directories), hard links, and what depends on emulated ids.
 */
#include "library.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "place.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* Linux 6.6, the same on all architectures */
#endif

/* What a change is made in: a directory, and a name in it. */
struct parent {
    int directory;
    const char *name;
    bool opened;
    int mount;
};

/* 0 or SLOW; what is missing is the tracer's to tell, flags may forbid more than that. */
static long open_parent(int directory, const char *path, struct parent *parent) {
    char host[PLACE_HOST];
    struct place place;
    long opened;

    if (!fast_is_on() || place_of(directory, path, host, &place) != 0)
        return SLOW;
    parent->name = place.name;
    parent->mount = place.mount;
    parent->opened = place.absolute;
    parent->directory = place.directory;
    if (!place.absolute)
        return place.path == place.name ? 0 : SLOW;
    host[place.directory_length] = '\0';
    opened = place_open(AT_FDCWD, place.directory_length > 0 ? host : "/", O_DIRECTORY);
    if (opened < 0)
        return SLOW;
    parent->directory = (int)opened;
    return 0;
}

static void close_parent(const struct parent *parent) {
    if (parent->opened)
        page_call(SYS_close, parent->directory, 0, 0, 0, 0);
}

/* The mode of what has this name; 0: nothing, or it cannot be asked. */
static unsigned mode_of(const struct parent *parent) {
    struct stat status;
    long error = page_call(SYS_newfstatat, parent->directory, (long)parent->name, (long)&status, AT_SYMLINK_NOFOLLOW, 0);

    return error == 0 ? status.st_mode : 0;
}

static long done(const struct parent *parent, long result) {
    close_parent(parent);
    fast.hits++;
    return result;
}

long fast_mkdir(int directory, const char *path, unsigned mode) {
    struct parent parent;

    if (open_parent(directory, path, &parent) != 0)
        return ask_tracer(SYS_mkdirat, directory, (long)path, mode, 0, 0);
    return done(&parent, page_call(SYS_mkdirat, parent.directory, (long)parent.name, mode, 0, 0));
}

long fast_unlink(int directory, const char *path, int flags) {
    struct parent parent;
    long result;

    if (flags != 0 || open_parent(directory, path, &parent) != 0)
        return ask_tracer(SYS_unlinkat, directory, (long)path, flags, 0, 0);
    bool is_link = S_ISLNK(mode_of(&parent));
    if (is_link)
        epoch_raise();
    result = page_call(SYS_unlinkat, parent.directory, (long)parent.name, 0, 0, 0);
    if (is_link)
        epoch_raise();
    return done(&parent, result);
}

long fast_symlink(const char *text, int directory, const char *path) {
    struct parent parent;

    if (open_parent(directory, path, &parent) != 0)
        return ask_tracer(SYS_symlinkat, (long)text, directory, (long)path, 0, 0);
    epoch_raise();
    long result = page_call(SYS_symlinkat, (long)text, parent.directory, (long)parent.name, 0, 0);
    epoch_raise();
    return done(&parent, result);
}

/* Both lie in one mount, as far as is known here. */
static bool in_one_mount(const struct parent *from, const struct parent *to) {
    if (from->mount >= 0 || to->mount >= 0)
        return from->mount == to->mount;
    return from->directory == to->directory;
}

long fast_rename(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
    struct parent old, new;
    long result = SLOW;

    if ((flags & ~1U) == 0 && open_parent(from_directory, from, &old) == 0) { /* RENAME_NOREPLACE, linux/fs.h */
        if (open_parent(to_directory, to, &new) == 0) {
            unsigned mode = mode_of(&old);
            if (in_one_mount(&old, &new) && mode != 0 && !S_ISDIR(mode)) {
                epoch_raise();
                result = page_call(SYS_renameat2, old.directory, (long)old.name, new.directory, (long)new.name, flags);
                epoch_raise();
            }
            close_parent(&new);
        }
        close_parent(&old);
    }
    if (result == SLOW)
        return ask_tracer(SYS_renameat2, from_directory, (long)from, to_directory, (long)to, flags);
    fast.hits++;
    return result;
}

/* ---- marks of a file --------------------------------------------------------------------------------------------- */

/* The file itself (O_PATH), its links followed or it is none; or SLOW. */
static long open_file(int directory, const char *path, bool follow) {
    char host[PLACE_HOST];
    struct place place;
    long opened = SLOW;

    if (!fast_is_on())
        return SLOW;
    if (place_of(directory, path, host, &place) == 0)
        opened = place_open(place.directory, place.path, follow ? 0 : O_NOFOLLOW);
    if (opened < 0 && follow && place_followed(path, host, &place) == 0)
        opened = place_open(AT_FDCWD, place.path, 0);
    return opened < 0 ? SLOW : opened;
}

static long closed(long descriptor, long result) {
    page_call(SYS_close, descriptor, 0, 0, 0, 0);
    /* Kernels before 5.8 and 6.6 do not take the empty path there. */
    if (result == -ENOSYS || result == -EINVAL || result == -EBADF || result == -EOPNOTSUPP)
        return SLOW;
    fast.hits++;
    return result;
}

long fast_chmod(int directory, const char *path, unsigned mode) {
    long file = open_file(directory, path, true), result = SLOW;

    if (file >= 0)
        result = closed(file, page_call(SYS_fchmodat2, file, (long)"", mode, AT_EMPTY_PATH, 0));
    return result != SLOW ? result : ask_tracer(SYS_fchmodat, directory, (long)path, mode, 0, 0);
}

long fast_chown(int directory, const char *path, unsigned uid, unsigned gid, int flags) {
    long file = SLOW, result = SLOW;

    if ((flags & ~AT_SYMLINK_NOFOLLOW) == 0 && fast_is_on() && !session()->has_ids)
        file = open_file(directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0);
    if (file >= 0)
        result = closed(file, page_call(SYS_fchownat, file, (long)"", uid, gid, AT_EMPTY_PATH));
    return result != SLOW ? result : ask_tracer(SYS_fchownat, directory, (long)path, uid, gid, flags);
}

long fast_utimens(int directory, const char *path, const void *times, int flags) {
    long file = SLOW, result = SLOW;

    if ((flags & ~AT_SYMLINK_NOFOLLOW) == 0 && path != NULL)
        file = open_file(directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0);
    if (file >= 0)
        result = closed(file, page_call(SYS_utimensat, file, (long)"", (long)times, AT_EMPTY_PATH, 0));
    return result != SLOW ? result : ask_tracer(SYS_utimensat, directory, (long)path, (long)times, flags, 0);
}

/* ---- libc's names ------------------------------------------------------------------------------------------------ */

/* Where nothing is answered here, the very call that libc would make. */
#ifdef SYS_mkdir
#define AS_LIBC(...)                                                                                                   \
    if (!fast_is_on())                                                                                                 \
    return (int)returned(raw_call(__VA_ARGS__))
#else
#define AS_LIBC(...)
#endif

EXPORT int mkdir(const char *path, mode_t mode) {
    AS_LIBC(SYS_mkdir, (long)path, mode, 0, 0, 0);
    return (int)returned(fast_mkdir(AT_FDCWD, path, mode));
}

EXPORT int mkdirat(int directory, const char *path, mode_t mode) {
    return (int)returned(fast_mkdir(directory, path, mode));
}

EXPORT int unlink(const char *path) {
    AS_LIBC(SYS_unlink, (long)path, 0, 0, 0, 0);
    return (int)returned(fast_unlink(AT_FDCWD, path, 0));
}

EXPORT int unlinkat(int directory, const char *path, int flags) {
    return (int)returned(fast_unlink(directory, path, flags));
}

EXPORT int symlink(const char *text, const char *path) {
    AS_LIBC(SYS_symlink, (long)text, (long)path, 0, 0, 0);
    return (int)returned(fast_symlink(text, AT_FDCWD, path));
}

EXPORT int symlinkat(const char *text, int directory, const char *path) {
    return (int)returned(fast_symlink(text, directory, path));
}

EXPORT int rename(const char *from, const char *to) {
    AS_LIBC(SYS_rename, (long)from, (long)to, 0, 0, 0);
    return (int)returned(fast_rename(AT_FDCWD, from, AT_FDCWD, to, 0));
}

EXPORT int renameat(int from_directory, const char *from, int to_directory, const char *to) {
    return (int)returned(fast_rename(from_directory, from, to_directory, to, 0));
}

EXPORT int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
    return (int)returned(fast_rename(from_directory, from, to_directory, to, flags));
}

EXPORT int chmod(const char *path, mode_t mode) {
    AS_LIBC(SYS_chmod, (long)path, mode, 0, 0, 0);
    return (int)returned(fast_chmod(AT_FDCWD, path, mode));
}

EXPORT int chown(const char *path, uid_t uid, gid_t gid) {
    AS_LIBC(SYS_chown, (long)path, uid, gid, 0, 0);
    return (int)returned(fast_chown(AT_FDCWD, path, uid, gid, 0));
}

EXPORT int lchown(const char *path, uid_t uid, gid_t gid) {
    AS_LIBC(SYS_lchown, (long)path, uid, gid, 0, 0);
    return (int)returned(fast_chown(AT_FDCWD, path, uid, gid, AT_SYMLINK_NOFOLLOW));
}

EXPORT int fchownat(int directory, const char *path, uid_t uid, gid_t gid, int flags) {
    return (int)returned(fast_chown(directory, path, uid, gid, flags));
}

/* As glibc: with the descriptor alone it is futimens. (Its header says that utimensat's path is never NULL.) */
static __attribute__((noinline)) long set_exact_times(int directory, const char *path, const void *times, int flags) {
    return path == NULL ? -EINVAL : fast_utimens(directory, path, times, flags);
}

EXPORT int utimensat(int directory, const char *path, const struct timespec times[2], int flags) {
    return (int)returned(set_exact_times(directory, path, times, flags));
}

static int set_times(const char *path, const struct timeval times[2], int flags) {
    struct timespec exact[2];

    for (int n = 0; times != NULL && n < 2; n++) {
        if (times[n].tv_usec < 0 || times[n].tv_usec >= 1000000)
            return (int)returned(-EINVAL);
        exact[n] = (struct timespec){times[n].tv_sec, times[n].tv_usec * 1000};
    }
    return (int)returned(fast_utimens(AT_FDCWD, path, times != NULL ? exact : NULL, flags));
}

EXPORT int utimes(const char *path, const struct timeval times[2]) {
    AS_LIBC(SYS_utimes, (long)path, (long)times, 0, 0, 0);
    return set_times(path, times, 0);
}

EXPORT int lutimes(const char *path, const struct timeval times[2]) {
    return set_times(path, times, AT_SYMLINK_NOFOLLOW);
}
