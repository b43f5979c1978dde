/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A path, component by component (components.h).
 */
#include "components.h"

#include <string.h>

bool dd_take_component(const char **path, struct dd_component *component) {
    const char *after;

    while (**path == '/')
        ++*path;
    if (**path == '\0')
        return false;
    component->name = *path;
    component->length = strcspn(*path, "/");
    *path += component->length;
    for (after = *path; *after == '/'; after++)
        ;
    component->last = *after == '\0';
    component->slash = component->last && after != *path;
    return true;
}

bool dd_take_up(const char **path) {
    const char *at = *path;

    while (*at == '/' || (at[0] == '.' && (at[1] == '/' || at[1] == '\0')))
        at++;
    if (at[0] != '.' || at[1] != '.' || (at[2] != '/' && at[2] != '\0'))
        return false;
    *path = at + 2;
    return true;
}
