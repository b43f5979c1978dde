/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the in-process library is told of the session.
 */
#ifndef DD_TRACER_SESSION_PAGE_H
#define DD_TRACER_SESSION_PAGE_H

struct tracer;

/* Into the file behind the epoch page, after the counter. The view must be finished. 0 or -errno. */
int session_page_write(const struct tracer *tracer, int descriptor);

#endif
