/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The path calls: which argument of which system call names a file, and how the kernel would read it.
 *
 * Rules of this file
 *  - One row per system call; the handler (translate.c) knows no call by name. A call that needs code of its own
 *    (execve, getcwd, sockets) is a row of call_owner.c, so that none is forgotten: a test walks every number of the
 *    architecture and finds exactly one owner, "untraced" included.
 *  - A row states facts of the kernel's documented behaviour (man section 2), never of another tracer's.
 *  - An absent or empty path is the kernel's business: it knows AT_EMPTY_PATH, EFAULT and ENOENT.
 */
#include "path_calls.h"

#include <linux/fcntl.h>   /* AT_*, O_* */
#include <linux/fs.h>      /* RENAME_* */
#include <linux/inotify.h> /* IN_DONT_FOLLOW */
#include <linux/stat.h>    /* AT_STATX_* */

#include "numbers.h"

#ifndef FAN_MARK_DONT_FOLLOW
#define FAN_MARK_DONT_FOLLOW 0x00000004 /* linux/fanotify.h */
#endif
#define NF AT_SYMLINK_NOFOLLOW
#define USUAL_OPEN                                                                                                     \
    (O_ACCMODE | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_LARGEFILE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND)
#define USUAL_STATX (AT_NO_AUTOMOUNT | AT_STATX_FORCE_SYNC)
#define USUAL_ACCESS 07 /* R_OK, W_OK, X_OK: unistd.h */

const struct path_call path_calls[] = {
    /* number                 traits                    {{dirfd,  path,   lookup,      flags,  bit, usual}, second} */
    {__NR_openat,             0,                        {{ARG(0), ARG(1), OPEN_FLAGS,  ARG(2), 0, USUAL_OPEN}}},
    {__NR_mkdirat,            MAKES,                    {{ARG(0), ARG(1), PARENT,      0,      0}}},
    {__NR_mknodat,            MAKES,                    {{ARG(0), ARG(1), PARENT,      0,      0}}},
    {__NR_unlinkat,           REMOVES,                  {{ARG(0), ARG(1), PARENT,      ARG(2), 0, AT_REMOVEDIR}}},
    {__NR_symlinkat,          MAKES | LINK_TEXT,        {{ARG(1), ARG(2), PARENT,      0,      0}}},
    {__NR_linkat,             MAKES | LINKS,            {{ARG(0), ARG(1), FOLLOW_IF,   ARG(4), AT_SYMLINK_FOLLOW},
                                                         {ARG(2), ARG(3), PARENT,      0,      0}}},
    {__NR_renameat2,          RENAMES,                  {{ARG(0), ARG(1), PARENT,      ARG(4), 0, RENAME_NOREPLACE},
                                                         {ARG(2), ARG(3), PARENT,      0,      0}}},
    {__NR_fchmodat,           0,                        {{ARG(0), ARG(1), FOLLOW,      0,      0}}},
    {__NR_fchmodat2,          0,                        {{ARG(0), ARG(1), NOFOLLOW_IF, ARG(3), NF}}},
    {__NR_fchownat,           CHANGES_OWNER,            {{ARG(0), ARG(1), NOFOLLOW_IF, ARG(4), NF}}},
    {__NR_utimensat,          0,                        {{ARG(0), ARG(1), NOFOLLOW_IF, ARG(3), NF}}},
    {__NR_statx,              QUERY | TELLS_TYPE,       {{ARG(0), ARG(1), NOFOLLOW_IF, ARG(2), NF, USUAL_STATX}}},
    {__NR_faccessat,          QUERY,                    {{ARG(0), ARG(1), FOLLOW,      ARG(2), 0, USUAL_ACCESS}}},
    {__NR_faccessat2,         QUERY,                    {{ARG(0), ARG(1), NOFOLLOW_IF, ARG(3), NF}}},
    {__NR_name_to_handle_at,  0,                        {{ARG(0), ARG(1), FOLLOW_IF,   ARG(4), AT_SYMLINK_FOLLOW}}},
    {__NR_setxattrat,         0,                        {{ARG(0), ARG(1), NOFOLLOW_IF, ARG(2), NF}}},
    {__NR_getxattrat,         0,                        {{ARG(0), ARG(1), NOFOLLOW_IF, ARG(2), NF}}},
    {__NR_listxattrat,        0,                        {{ARG(0), ARG(1), NOFOLLOW_IF, ARG(2), NF}}},
    {__NR_removexattrat,      0,                        {{ARG(0), ARG(1), NOFOLLOW_IF, ARG(2), NF}}},
    {__NR_file_getattr,       0,                        {{ARG(0), ARG(1), NOFOLLOW_IF, ARG(4), NF}}},
    {__NR_file_setattr,       0,                        {{ARG(0), ARG(1), NOFOLLOW_IF, ARG(4), NF}}},
    {__NR_fanotify_mark,      0,                        {{ARG(3), ARG(4), NOFOLLOW_IF, ARG(1), FAN_MARK_DONT_FOLLOW}}},
    {__NR_inotify_add_watch,  0,                        {{0,      ARG(1), NOFOLLOW_IF, ARG(2), IN_DONT_FOLLOW}}},
    {__NR_chdir,              0,                        {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_truncate,           0,                        {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_statfs,             0,                        {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_setxattr,           0,                        {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_getxattr,           0,                        {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_listxattr,          0,                        {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_removexattr,        0,                        {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_lsetxattr,          0,                        {{0,      ARG(0), NOFOLLOW,    0,      0}}},
    {__NR_lgetxattr,          0,                        {{0,      ARG(0), NOFOLLOW,    0,      0}}},
    {__NR_llistxattr,         0,                        {{0,      ARG(0), NOFOLLOW,    0,      0}}},
    {__NR_lremovexattr,       0,                        {{0,      ARG(0), NOFOLLOW,    0,      0}}},
    {__NR_acct,               0,                        {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_swapon,             0,                        {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_swapoff,            0,                        {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_quotactl,           0,                        {{0,      ARG(1), FOLLOW,      0,      0}}},
#ifdef __NR_renameat
    {__NR_renameat,           RENAMES,                  {{ARG(0), ARG(1), PARENT,      0,      0},
                                                         {ARG(2), ARG(3), PARENT,      0,      0}}},
#endif
#ifdef __NR_newfstatat
    {__NR_newfstatat,         QUERY | TELLS_TYPE,       {{ARG(0), ARG(1), NOFOLLOW_IF, ARG(3), NF, AT_NO_AUTOMOUNT}}},
#endif
#ifdef __NR_open /* the calls without a directory's descriptor, which newer architectures lack */
    {__NR_open,               0,                        {{0,      ARG(0), OPEN_FLAGS,  ARG(1), 0, USUAL_OPEN}}},
    {__NR_creat,              0,                        {{0,      ARG(0), CREATES,     0,      0}}},
    {__NR_stat,               QUERY | TELLS_TYPE,       {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_lstat,              QUERY,                    {{0,      ARG(0), NOFOLLOW,    0,      0}}},
    {__NR_access,             QUERY,                    {{0,      ARG(0), FOLLOW,      ARG(1), 0, USUAL_ACCESS}}},
    {__NR_mkdir,              MAKES,                    {{0,      ARG(0), PARENT,      0,      0}}},
    {__NR_mknod,              MAKES,                    {{0,      ARG(0), PARENT,      0,      0}}},
    {__NR_rmdir,              REMOVES | OF_DIRECTORY,   {{0,      ARG(0), PARENT,      0,      0}}},
    {__NR_unlink,             REMOVES,                  {{0,      ARG(0), PARENT,      0,      0}}},
    {__NR_symlink,            MAKES | LINK_TEXT,        {{0,      ARG(1), PARENT,      0,      0}}},
    {__NR_link,               MAKES | LINKS,            {{0,      ARG(0), NOFOLLOW,    0,      0},
                                                         {0,      ARG(1), PARENT,      0,      0}}},
    {__NR_rename,             RENAMES,                  {{0,      ARG(0), PARENT,      0,      0},
                                                         {0,      ARG(1), PARENT,      0,      0}}},
    {__NR_chmod,              0,                        {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_chown,              CHANGES_OWNER,            {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_lchown,             CHANGES_OWNER,            {{0,      ARG(0), NOFOLLOW,    0,      0}}},
    {__NR_utime,              0,                        {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_utimes,             0,                        {{0,      ARG(0), FOLLOW,      0,      0}}},
    {__NR_futimesat,          0,                        {{ARG(0), ARG(1), FOLLOW,      0,      0}}},
#endif
};

const size_t path_call_count = sizeof(path_calls) / sizeof(path_calls[0]);
