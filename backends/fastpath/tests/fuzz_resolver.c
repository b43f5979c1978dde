/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Fuzzes the resolver on a synthetic file system: libFuzzer's entry, and with -DREPLAY a main that runs files (gcc).
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined resolver/{view,walk,guest_name,proc_links}.c tests/fuzz_resolver.c
 *   gcc -g -fsanitize=address,undefined -DREPLAY ... ; ./fuzz_resolver FILE...    (no file: 20,000 random inputs)
 *
 * The file system is a pure function of the path: the hash of its last component and of the input's seed says whether
 * that is a directory, a file, missing, or a link, and to where; so it is as large and as odd as the walk likes. What
 * must hold:
 *  - the results are terminated and canonical, lie in a bind, and the host path has no link and no ".." left in it;
 *  - the guest name of what was found leads back to it, and resolving the guest path again gives the same host path;
 *  - not more than 40 links are followed, and the questions are about terminated absolute paths without links.
 */
#include "../resolver/resolver.h"
#include "../resolver/sys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct dd_view view;
static struct dd_result result, again;
static const uint8_t *seed;
static size_t seed_size;
static const char *pieces[] = {"a",   "b",  "c",  "..",   ".",  "",        "/",    "proc", "self", "fd",
                               "1",   "exe", "cwd", "root", "l", "\xff\n", "a/b", "../..", "thread-self", "task"};

static void hold(bool law, const char *what) {
    if (!law) {
        fprintf(stderr, "broken: %s\nhost  %s\nguest %s\nbinds", what, result.host, result.guest);
        for (size_t n = 0; n < view.count; n++)
            fprintf(stderr, " %s:%s", view.binds[n].host, view.binds[n].guest);
        fprintf(stderr, "\n");
        abort();
    }
}

/* ---- the file system --------------------------------------------------------------------------------------------- */

static uint32_t hash(const char *text, size_t length) {
    uint32_t value = 2166136261U; /* FNV-1a */

    for (size_t at = 0; at < length; at++)
        value = (value ^ (uint8_t)text[at]) * 16777619U;
    for (size_t at = 0; at < seed_size; at++)
        value = (value ^ seed[at]) * 16777619U;
    return value ^ value >> 15;
}

enum what { DIRECTORY, REGULAR, LINK, MISSING };

/* What one host path is, its parents left aside. What is bound is no link, nor is anything above it: binds are
 * canonical. */
static enum what what_is(const char *path, size_t length) {
    static const enum what kinds[] = {DIRECTORY, DIRECTORY, DIRECTORY, DIRECTORY, LINK, LINK, REGULAR, MISSING};

    bool bound = false;

    for (size_t n = 0; n < view.count; n++) {
        const struct dd_bind *bind = &view.binds[n];

        if (bind->host_length < length || memcmp(bind->host, path, length) != 0)
            continue;
        if (bind->host_length > length && bind->host[length] == '/')
            return DIRECTORY;
        bound |= bind->host_length == length;
    }
    if (bound)
        return hash(path, length) % 4 == 0 ? REGULAR : DIRECTORY;
    return length <= 2 ? DIRECTORY : kinds[hash(path, length) % 8];
}

/* Goes down a host path, "." and ".." included, which no link may be in the way of. The name of the last file goes to
 * place and what it is to kind; 0 or -errno. A link of procfs is a directory to who goes through it. */
static int go(const char *path, char place[DD_PATH_BUFFER], size_t *length, enum what *kind) {
    hold(strlen(path) < DD_PATH_BUFFER && path[0] == '/', "a question about no path");
    *length = 0;
    *kind = DIRECTORY;
    while (*(path += strspn(path, "/")) != '\0') {
        size_t size = strcspn(path, "/");

        hold(*kind != LINK || memcmp(place, "/proc/", 6) == 0, "a link is left in the host path");
        if (*kind == MISSING || *kind == REGULAR)
            return *kind == MISSING ? -ENOENT : -ENOTDIR;
        if (size == 2 && memcmp(path, "..", 2) == 0) {
            while (*length > 0 && place[--*length] != '/')
                ;
        } else if (size != 1 || path[0] != '.') {
            place[(*length)++] = '/';
            memcpy(place + *length, path, size);
            *length += size;
        }
        place[*length] = '\0';
        path += size;
        *kind = what_is(place, *length);
        if (size <= 2 && path[-1] == '.' && path[-(long)size] == '.')
            *kind = DIRECTORY;
    }
    return 0;
}

int dd_sys_readlink(const char *path, char *buffer, size_t size) {
    static char place[DD_PATH_BUFFER];
    size_t length, used = 0;
    enum what kind;
    int error = go(path, place, &length, &kind);
    uint32_t word;

    if (error != 0 || kind != LINK)
        return error != 0 ? error : kind == MISSING ? -ENOENT : -EINVAL;
    word = hash(place, length) / 8;
    if (length > 6 && memcmp(place, "/proc/", 6) == 0 && word % 4 != 0) { /* canonical, as the kernel says it */
        const char *said = word % 4 == 1 ? "pipe:[1]" : view.binds[word % view.count].host;

        used = (size_t)snprintf(buffer, size, "%s%s", *said != '\0' ? said : "/", word % 64 == 2 ? " (deleted)" : "");
        return (int)(used < size ? used : size);
    }
    if (word & 1)
        buffer[used++] = '/';
    if (length > 6 && memcmp(place, "/proc/", 6) == 0)
        used = 0; /* relative, as those that are no jumps */
    for (word >>= 1; used + 16 < size && word > 0; word /= 24) {
        const char *piece = pieces[word % (sizeof pieces / sizeof pieces[0])];

        memcpy(buffer + used, piece, strlen(piece));
        used += strlen(piece);
        if (word >= 24)
            buffer[used++] = '/';
    }
    if (hash(place, length) % 61 == 0) /* a long one now and then */
        for (; used + 1 < size; used++)
            buffer[used] = "x/"[used % 200 == 199];
    if (used == 0 || (length > 6 && memcmp(place, "/proc/", 6) == 0)) {
        buffer[0] = 'a'; /* no empty piece has made it absolute */
        used += used == 0;
    }
    return (int)(used < size ? used : size);
}

int dd_sys_mode(const char *path, unsigned *mode) {
    static char place[DD_PATH_BUFFER];
    size_t length;
    enum what kind;
    int error = go(path, place, &length, &kind);

    *mode = 0100644;
    return error != 0 ? error : kind == MISSING ? -ENOENT : 0;
}

/* ---- one run ----------------------------------------------------------------------------------------------------- */

static int guest_exe(const struct dd_process *process, pid_t pid, char *buffer, size_t size) {
    (void)process;
    if (pid % 2 == 0 || size < 8)
        return -ESRCH;
    strcpy(buffer, "/a/exe");
    return 6;
}

static const struct dd_process process = {.tid = 11, .tgid = 1, .guest_exe = guest_exe};

/* Takes a path from the input: small bytes are pieces, others stand for themselves; 0 ends it. */
static const uint8_t *take(const uint8_t *data, const uint8_t *end, char *path, size_t size) {
    size_t used = 0;

    for (; data < end && *data != 0; data++) {
        char self[2] = {(char)*data, '\0'};
        const char *piece = *data <= sizeof pieces / sizeof pieces[0] ? pieces[*data - 1] : self;

        if (used + strlen(piece) + 1 >= size)
            break;
        memcpy(path + used, piece, strlen(piece));
        used += strlen(piece);
        if (piece != self)
            path[used++] = '/';
    }
    path[used] = '\0';
    return data < end ? data + 1 : data;
}

/* As mount(8) does: on what is there, and not over a mount that lies deeper. */
static void add_mount(const char *host, const char *guest) {
    /* Sessions refuse binds of what belongs to a process: its links are jumps, so no text of such a path is canonical. */
    if (strncmp(host, "/proc/", 6) == 0)
        return;
    if (dd_resolve(&view, &process, NULL, guest, DD_FOLLOW, &result) != 0 || result.missing || result.magic ||
        result.outside)
        return;
    for (size_t n = 0; n < view.count; n++)
        if (view.binds[n].guest_length > result.guest_length &&
            memcmp(view.binds[n].guest, result.guest, result.guest_length) == 0)
            return;
    dd_view_add(&view, host, result.guest);
    dd_view_finish(&view);
}

static void check_host(enum dd_mode mode) {
    const char *part = result.host;

    hold(strlen(result.host) == result.host_length && strlen(result.guest) == result.guest_length, "lengths");
    hold(result.name_length <= result.host_length && result.links <= DD_MAX_LINKS, "bounds");
    if (result.outside || result.magic)
        return;
    hold(result.mount >= 0 && (size_t)result.mount < view.count, "a mount");
    for (; (part = strstr(part, "/..")) != NULL; part += 3)
        hold((part[3] != '/' && part[3] != '\0') || (mode == DD_PARENT && part[3] == '\0'),
             "\"..\" is left in the host path");
}

static void check_name(enum dd_mode mode) {
    static char guest[DD_PATH_BUFFER], path[DD_PATH_BUFFER];
    int named;

    if (result.outside || result.magic || mode == DD_PARENT || result.guest_length + 1 >= PATH_MAX)
        return;
    named = dd_guest_name(&view, result.host, result.name_length, guest);
    hold(named >= 0, "what was found has a name");
    /* By name: any of its names must lead to the same file, if no link or procfs is in the way of another name. */
    path[0] = '/';
    memcpy(path + (result.guest_length > 0 ? 0 : 1), result.guest, result.guest_length + 1);
    if (dd_resolve(&view, &process, NULL, path, DD_NOFOLLOW, &again) == 0)
        hold(again.name_length == result.name_length && memcmp(again.host, result.host, result.name_length) == 0,
             "the guest path leads to the host path");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char host[PATH_MAX], guest[PATH_MAX], path[2 * PATH_MAX], base[DD_PATH_BUFFER], text[DD_PATH_BUFFER];
    const uint8_t *end = data + size;
    unsigned binds;

    if (size < 6)
        return 0;
    memset(&view, 0, offsetof(struct dd_view, text));
    seed = data;
    seed_size = 4;
    binds = data[4] % 8;
    data += 5;
    hold(dd_view_add(&view, "/r", "") == 0, "the root");
    dd_view_finish(&view);
    for (; binds > 0; binds--) {
        data = take(data, end, host + 1, sizeof host - 1);
        data = take(data, end, guest + 1, sizeof guest - 1);
        host[0] = guest[0] = '/';
        add_mount(host, guest);
    }
    path[0] = '/';
    data = take(data, end, path + 1, sizeof path - 1);
    strcpy(base, "/r");
    /* Canonical, or a magic link. */
    if (dd_resolve(&view, &process, base, path, DD_FOLLOW, &result) == 0 && !result.outside) {
        memcpy(base, result.host, result.name_length);
        base[result.name_length] = '\0';
        /* Of something removed: whoever asks makes it a name that nothing has. */
        if (what_is(base, strlen(base)) == LINK && strstr(base, "/proc/") == NULL)
            strcpy(base, "/r");
    }
    while (data < end) {
        data = take(data, end, path, sizeof path);
        for (int mode = DD_FOLLOW; mode <= DD_PARENT; mode++) {
            if (dd_resolve(&view, &process, base, path, (enum dd_mode)mode, &result) == 0) {
                check_host((enum dd_mode)mode);
                if (mode == DD_NOFOLLOW)
                    dd_proc_link(&view, &process, result.host, &again.work, text);
                check_name((enum dd_mode)mode);
            }
        }
    }
    return 0;
}

#ifdef REPLAY
static void replay(FILE *file) {
    static uint8_t data[1 << 16];

    LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof data, file));
}

static void random_runs(unsigned long count) {
    uint8_t data[256];
    uint64_t state = 88172645463325252ULL; /* xorshift64, Marsaglia */

    for (; count > 0; count--) {
        for (size_t at = 0; at < sizeof data; at++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            data[at] = state % 8 == 0 ? 0 : (uint8_t)(state >> 8) % (state % 31 == 0 ? 255 : 21);
        }
        LLVMFuzzerTestOneInput(data, 16 + state % 240);
    }
}

int main(int count, char **names) {
    if (count < 2)
        random_runs(20000);
    for (int n = 1; n < count; n++) {
        FILE *file = fopen(names[n], "rb");

        if (file == NULL)
            return 2;
        replay(file);
        fclose(file);
    }
    return 0;
}
#endif
