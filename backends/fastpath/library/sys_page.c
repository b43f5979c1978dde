/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The resolver's questions, asked from the page.
 */
#include "resolver/sys.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "library.h"

int dd_sys_readlink(const char *path, char *buffer, size_t size) {
    return (int)page_call(SYS_readlinkat, AT_FDCWD, (long)path, (long)buffer, (long)size, 0);
}

int dd_sys_mode(const char *path, unsigned *mode) {
    struct stat status;
    long error = page_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status, AT_SYMLINK_NOFOLLOW, 0);

    if (error == 0)
        *mode = status.st_mode;
    return (int)error;
}
