/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How the loader ends when it cannot start the program.
 */
#ifndef DD_LOADER_FAILURE_H
#define DD_LOADER_FAILURE_H

#define LOADER_EXIT 125 /* our own failure, as the tracer's and the launcher's */

/* A reason the kernel's execve would have given, had it been there when the tracer looked (a file replaced in between):
 * one line on standard error, then exit. `what` names a file or is empty. */
_Noreturn void fail(const char *reason, const char *what);

/* An image that cannot be mapped: past its point of no return the kernel's execve ends the process by SIGSEGV. */
_Noreturn void fail_as_the_kernel(void);

#endif
