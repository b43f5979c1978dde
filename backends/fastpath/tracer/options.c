/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The command line: a table of options, each with a short and a long form, spelled as proot spells them.
 *
 * Rules of this file
 *  - `-r X`, `--rootfs=X` and `--rootfs X` are one. The first word that is no option begins the main program's command.
 *  - What is not understood is an error, never a warning: a guest without one of its binds is another guest.
 */
#define _GNU_SOURCE
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"

#ifndef DD_VERSION
#define DD_VERSION "unknown"
#endif

static void set_root(struct options *options, const char *value) {
    options->root = value;
}

static void set_cwd(struct options *options, const char *value) {
    options->cwd = value;
}

/* HOST, or HOST:GUEST. A path with a colon in it cannot be said, as in proot. */
static void add_bind(struct options *options, const char *value) {
    const char *colon = strchr(value, ':');
    size_t length = colon != NULL ? (size_t)(colon - value) : strlen(value);

    if (options->bind_count == DD_MAX_BINDS)
        fail("more than %d binds", DD_MAX_BINDS);
    if (length == 0 || (colon != NULL ? colon[1] : value[0]) != '/')
        fail("bind %s: want HOST or HOST:GUEST, GUEST an absolute path", value);
    char *host = strndup(value, length);
    if (host == NULL)
        fail("out of memory");
    const char *guest = colon != NULL ? colon + 1 : host;
    options->binds[options->bind_count++] = (struct requested_bind){host, guest};
}

static unsigned read_id(const char *value, const char *digits, char **end) {
    errno = 0;
    unsigned long id = strtoul(digits, end, 10);
    if (*end == digits || errno != 0 || id >= (unsigned)-1 || digits[0] < '0' || digits[0] > '9')
        fail("-i %s: want UID:GID", value);
    return (unsigned)id;
}

static void set_ids(struct options *options, const char *value) {
    char *end;

    options->uid = read_id(value, value, &end);
    if (*end != ':')
        fail("-i %s: want UID:GID", value);
    options->gid = read_id(value, end + 1, &end);
    if (*end != '\0')
        fail("-i %s: want UID:GID", value);
    options->has_ids = true;
}

static void set_root_identity(struct options *options, const char *value) {
    (void)value;
    options->has_ids = true;
    options->uid = 0;
    options->gid = 0;
}

static void set_kernel_release(struct options *options, const char *value) {
    options->kernel_release = value;
}

static void set_kill_on_exit(struct options *options, const char *value) {
    (void)value;
    options->kill_on_exit = true;
}

static void print_version(struct options *options, const char *value) {
    (void)options;
    (void)value;
    puts("droiddeck-tracer " DD_VERSION);
    exit(EXIT_SUCCESS);
}

static void print_help(struct options *options, const char *value);

struct option {
    const char *short_form, *long_form;
    const char *value; /* what it takes; NULL: nothing */
    void (*take)(struct options *options, const char *value);
    const char *help;
};

static const struct option option_table[] = {
    {"-r", "--rootfs", "path", set_root, "The guest's root; without it the host's."},
    {"-b", "--bind", "path", add_bind, "HOST or HOST:GUEST: show HOST in the guest, at GUEST. Again for more."},
    {"-w", "--cwd", "path", set_cwd, "The working directory, a guest path; without it /."},
    {"-i", "--change-id", "string", set_ids, "UID:GID: who the guest is told to be."},
    {"-0", "--root-id", NULL, set_root_identity, "As -i 0:0; giving files away is pretended."},
    {"-k", "--kernel-release", "string", set_kernel_release,
     "The kernel's release, or \\sysname\\nodename\\release\\version\\machine\\domainname\\hwcap\\."},
    {NULL, "--kill-on-exit", NULL, set_kill_on_exit, "When the main program ends, end all others."},
    {"-h", "--help", NULL, print_help, "This text."},
    {"-V", "--version", NULL, print_version, "The version."},
};

enum { OPTION_COUNT = sizeof(option_table) / sizeof(option_table[0]) };

static void print_help(struct options *options, const char *value) {
    (void)options;
    (void)value;
    puts("droiddeck-tracer " DD_VERSION ": runs a program in a guest's files, by ptrace and seccomp\n\n"
         "Usage: droiddeck-tracer [OPTION]... PROGRAM [ARGUMENT]...\n");
    for (size_t n = 0; n < OPTION_COUNT; n++) {
        const struct option *option = &option_table[n];
        printf("  ");
        if (option->short_form != NULL && option->value != NULL)
            printf("%s *%s*, ", option->short_form, option->value);
        else if (option->short_form != NULL)
            printf("%s, ", option->short_form);
        printf(option->value != NULL ? "%s=*%s*\n" : "%s\n", option->long_form, option->value);
        printf("\t%s\n", option->help);
    }
    puts("\nEnvironment: PROOT_LOADER (the loader's path), PROOT_TMP_DIR (for files of its own; else /tmp),\n"
         "PROOT_FASTPATH (the key of the in-process fast path).\n"
         "Status: the main program's, 128+n by signal n; 125 own failure, 126 cannot be run, 127 not found.");
    exit(EXIT_SUCCESS);
}

/* The option of this word, and its value if it is part of the word. */
static const struct option *find(const char *word, const char **value) {
    size_t length = strcspn(word, "=");

    *value = NULL;
    for (size_t n = 0; n < OPTION_COUNT; n++) {
        const struct option *option = &option_table[n];
        if (option->short_form != NULL && strcmp(word, option->short_form) == 0)
            return option;
        if (strlen(option->long_form) != length || strncmp(word, option->long_form, length) != 0)
            continue;
        if (word[length] == '=')
            *value = word + length + 1;
        return option;
    }
    fail("unknown option %s", word);
}

void options_parse(struct options *options, int argc, char **argv) {
    int n = 1;

    *options = (struct options){.root = "/", .cwd = "/"};
    for (; n < argc && argv[n][0] == '-'; n++) {
        const char *value;
        if (strcmp(argv[n], "--") == 0) {
            n++;
            break;
        }
        const struct option *option = find(argv[n], &value);
        if (option->value == NULL && value != NULL)
            fail("option %s takes no value", option->long_form);
        if (option->value != NULL && value == NULL) {
            if (n + 1 == argc)
                fail("option %s wants a value", argv[n]);
            value = argv[++n];
        }
        option->take(options, value);
    }
    if (n >= argc)
        fail("no program to run; see --help");
    options->command = argv + n;
}
