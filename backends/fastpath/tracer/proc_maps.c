/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * /proc/PID/maps and its kin, with the guest's names of the mapped files.
 *
 * Rules of this file
 *  - Programs look there for their own file and those of their libraries, and open what they find: relocatable
 *    programs, sanitizers and profilers. So the text is made when the file is opened, with names as a process in a
 *    mount namespace would see them. All addresses stay: Wine and garbage collectors plan by them.
 *  - It is the text of that moment: who seeks to its start and reads again sees no later mapping.
 *  - The loader's own mappings are named as the kernel names what is no file. A file that no bind shows keeps the
 *    host's name, as the kernel gives one outside of the root that of its own mount.
 *  - The caller opens a file in the tracer's folder, which is gone when the call ends.
 */
#define _GNU_SOURCE
#include "proc_maps.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binds.h"
#include "call.h"
#include "exec_rights.h"
#include "path_calls.h"
#include "tracer.h"
#include "translate.h"

static const char removed_suffix[] = " (deleted)"; /* d_path, fs/d_path.c */

static bool is_maps(const char *host) {
    static const char *const names[] = {"/maps", "/smaps", "/numa_maps"};
    const char *name = strrchr(host, '/');

    if (strncmp(host, "/proc/", strlen("/proc/")) != 0 || !isdigit((unsigned char)host[strlen("/proc/")]))
        return false;
    for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
        if (strcmp(name, names[n]) == 0)
            return true;
    return false;
}

/* A name as the kernel shows it to the host: what the guest shall see, in `guest` or a constant. */
static const char *shown_name(const struct tracer *tracer, const char *name, char guest[DD_PATH_BUFFER]) {
    const size_t suffix = sizeof(removed_suffix) - 1;
    size_t length = strlen(name);
    bool removed = length > suffix && strcmp(name + length - suffix, removed_suffix) == 0;

    if (strcmp(name, tracer->loader) == 0)
        return "[droiddeck-loader]";
    if (tracer->epoch_path[0] != '\0' && strcmp(name, tracer->epoch_path) == 0)
        return "[droiddeck-epoch]";
    int guest_length = dd_guest_name(&tracer->view, name, removed ? length - suffix : length, guest);
    if (guest_length < 0)
        return name;
    strcpy(guest + guest_length, removed ? removed_suffix : "");
    return guest;
}

/* Lines as "7f..-7f.. r-xp 00000000 08:01 1234   /name"; only names have slashes, and only behind those fields. In
 * numa_maps as "7f.. default file=/name mapped=2", where a blank in a name is written otherwise. */
static void copy_lines(const struct tracer *tracer, FILE *from, FILE *to) {
    char guest[DD_PATH_BUFFER];
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, from) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *name = strchr(line, '/');
        if (name == NULL || memchr(line, '[', (size_t)(name - line)) != NULL || strlen(name) >= PATH_MAX) {
            fprintf(to, "%s\n", line);
            continue;
        }
        int before = (int)(name - line);
        char *rest = name[-1] == '=' ? strchr(name, ' ') : NULL;
        if (rest != NULL)
            *rest++ = '\0';
        const char *shown = shown_name(tracer, name, guest);
        fprintf(to, "%.*s%s%s%s\n", before, line, shown, rest != NULL ? " " : "", rest != NULL ? rest : "");
    }
    free(line);
}

static FILE *open_source(const struct call *call, const char *host) {
    struct rights own;

    rights_borrow(call->tracee, &own);
    FILE *source = fopen(host, "re");
    int error = errno;
    rights_return(&own);
    errno = error;
    return source;
}

/* For nobody but the user that the caller is. */
static FILE *make_copy(const struct call *call, char path[PATH_MAX]) {
    char process[64];
    struct stat owner;

    int error = binds_name_for(call->tracer, call_tid(call), path);
    int descriptor = error == 0 ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0400) : -1;
    if (descriptor < 0)
        return NULL;
    snprintf(process, sizeof(process), "/proc/%d", (int)call_tid(call));
    if (geteuid() == 0 && (stat(process, &owner) != 0 || fchown(descriptor, owner.st_uid, owner.st_gid) != 0)) {
        close(descriptor);
        return NULL;
    }
    return fdopen(descriptor, "w");
}

static void remove_copy(struct call *call) {
    char path[PATH_MAX];

    if (binds_name_for(call->tracer, call_tid(call), path) == 0)
        unlink(path);
}

/* 0 or -errno. */
static int copy(const struct call *call, const char *host, char path[PATH_MAX]) {
    FILE *from = open_source(call, host);
    if (from == NULL)
        return -errno;
    FILE *to = make_copy(call, path);
    if (to != NULL)
        copy_lines(call->tracer, from, to);
    bool complete = to != NULL && !ferror(from);
    fclose(from);
    complete = to != NULL && fclose(to) == 0 && complete;
    return complete ? 0 : -EIO;
}

bool proc_maps_enter(struct call *call, const struct path_call *row, const struct dd_result *result) {
    char path[PATH_MAX];

    if (row->paths[0].lookup != OPEN_FLAGS || !result->caller_dependent || !is_maps(result->host))
        return false;
    if ((path_flags(call, &row->paths[0]) & (O_ACCMODE | O_PATH | O_DIRECTORY | O_CREAT | O_TRUNC)) != O_RDONLY)
        return false;
    int error = copy(call, result->host, path);
    if (error == 0) {
        const struct replacement text = {.argument = row->paths[0].path - 1, .bytes = path, .size = strlen(path) + 1};
        error = call_replace(call, &text, 1);
    }
    if (error == 0) {
        call_at_exit(call, remove_copy);
        return true;
    }
    remove_copy(call);
    call_answer(call, error);
    return true;
}
