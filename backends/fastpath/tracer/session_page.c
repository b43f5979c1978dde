/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Writes what the in-process library is told of the session (struct dd_session).
 */
#define _GNU_SOURCE
#include "session_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../session_page.h"
#include "identity.h"
#include "kernel_identity.h"
#include "tracer.h"

/* The place in the library's copy of a text in the view's own. */
static const char *moved(const struct dd_view *view, const char *text) {
    return (const char *)(uintptr_t)(DD_SESSION + offsetof(struct dd_session, view.text) + (size_t)(text - view->text));
}

static void move_texts(const struct dd_view *view, struct dd_view *copy) {
    for (size_t n = 0; n < view->count; n++) {
        copy->binds[n].host = moved(view, view->binds[n].host);
        copy->binds[n].guest = moved(view, view->binds[n].guest);
    }
}

int session_page_write(const struct tracer *tracer, int descriptor) {
    struct dd_session *session = calloc(1, sizeof(*session));

    if (session == NULL)
        return -ENOMEM;
    session->magic = DD_SESSION_MAGIC;
    session->abi_version = DD_ABI_VERSION;
    identity_tell_session(session);
    session->has_identity = kernel_identity_set();
    if (session->has_identity)
        kernel_identity_tell(session->identity);
    memcpy(&session->view, &tracer->view, sizeof(session->view));
    move_texts(&tracer->view, &session->view);
    size_t used = offsetof(struct dd_session, view.text) + session->view.text_used;
    ssize_t written = pwrite(descriptor, session, used, DD_EPOCH_SIZE);
    int error = written == (ssize_t)used ? 0 : written < 0 ? -errno : -ENOSPC;
    free(session);
    return error;
}
