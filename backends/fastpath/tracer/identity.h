/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Emulated user and group ids (-i, -0).
 */
#ifndef DD_TRACER_IDENTITY_H
#define DD_TRACER_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct call;
struct dd_info;
struct dd_result;
struct dd_session;
struct options;
struct path_call;
struct tracee;

/* Emulate, unless the wanted ids are the real ones: then the kernel does it all. */
void identity_start(const struct options *options);
bool identity_emulated(void);

bool identity_is_root(struct tracee *tracee);
void identity_map_owner(struct tracee *tracee, uint32_t *uid, uint32_t *gid); /* of a file, as the guest shall see it */

void identity_call(struct call *call);            /* getuid and its kin, set*id, fstat, fchown, SO_PEERCRED */

/* chown and its kin; true: the call is answered. And fchownat of a descriptor alone. */
bool identity_change_owner(struct call *call, const struct path_call *row, const struct dd_result *result);
void identity_change_descriptor(struct call *call, const struct path_call *row);

void identity_inherit(struct tracee *child, struct tracee *parent); /* NULL: those that the session began with */
bool identity_same(const struct tracee *one, const struct tracee *other); /* of two whose ids are known */
void identity_exec(struct tracee *tracee);
void identity_tell(struct tracee *tracee, struct dd_info *info); /* what its loader puts into the auxiliary vector */
void identity_tell_session(struct dd_session *session);
void identity_forget(struct tracee *tracee);

#endif
