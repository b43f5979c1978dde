/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A path, component by component.
 */
#ifndef DD_COMPONENTS_H
#define DD_COMPONENTS_H

#include <stdbool.h>
#include <stddef.h>

struct dd_component {
    const char *name;
    size_t length;
    bool last, slash; /* slash: last, and slashes come after it */
};

/* Takes the next component from the path, if there is one. */
bool dd_take_component(const char **path, struct dd_component *component);

/* Passes ".." if that is what comes next, after slashes and ".". */
bool dd_take_up(const char **path);

#endif
