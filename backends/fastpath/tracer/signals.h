/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Signals that the tracer itself gets.
 */
#ifndef DD_TRACER_SIGNALS_H
#define DD_TRACER_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

void signals_start(pid_t main_pid); /* after the fork: from now on they are the main program's */

void signals_main_stopped(bool stopped); /* the main program is stopped by a signal, or goes on */
void signals_main_ended(void);
bool signals_end_wanted(void); /* one came after the main program's end: what is left shall end too */

#endif
