/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Whether the fast path is on in this process.
 *
 * Rules of this file
 *  - On only if our loader says so in the auxiliary vector, with the layout that this library was built for, and the
 *    page's place is free: ASan's shadow lies there in programs that are built so.
 *  - All threads that come here at once find out the same, so nobody waits.
 *  - Whoever was let in by another session's environment stays out: a key that is there must be this session's.
 */
#include "library.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h> /* environ */

#include "place.h"

enum { DEFAULT_LIFE_MS = 2000, LONGEST_LIFE_MS = 60000 };

struct fast fast;

long failed(long error) {
    errno = (int)-error;
    return -1;
}

static const char *variable(const char *name) {
    size_t length = strlen(name);

    for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

/* The kernel reads the mask before it looks at `how`, which is none: EINVAL, or EFAULT where nothing can be read. */
static bool can_be_read(uint64_t address) {
    return raw_call(SYS_rt_sigprocmask, -1, (long)address, 0, 8, 0) == -EINVAL;
}

/* The template is moved onto a reservation of our own, so nothing of anybody else's is ever replaced. Of two threads that
 * come here at once the second may find the place taken and nothing in it yet: then the fast path stays off. */
static void take_page(size_t page_size) {
    const int reserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    long at = raw_call6(SYS_mmap, (const long[]){(long)DD_PAGE, (long)page_size, PROT_NONE, reserve, -1, 0});

    if (at == (long)DD_PAGE)
        raw_call(SYS_mremap, (long)DD_PAGE_TEMPLATE, (long)page_size, (long)page_size, MREMAP_MAYMOVE | MREMAP_FIXED,
                 (long)DD_PAGE);
    else if (at > 0) /* before Linux 4.17 the address is a hint */
        raw_call(SYS_munmap, at, (long)page_size, 0, 0, 0);
}

static bool page_is_ours(void) {
    static const unsigned char code[] = DD_PAGE_CODE;

    if (!can_be_read(DD_PAGE))
        take_page(getauxval(AT_PAGESZ));
    return can_be_read(DD_PAGE) && memcmp((const void *)(uintptr_t)DD_PAGE, code, sizeof(code)) == 0;
}

/* NULL: it is on. */
static const char *reason_off(void) {
    const char *key = variable(DD_GUEST_KEY);

    if (variable(DD_GUEST_OFF) != NULL)
        return DD_GUEST_OFF " is set";
    if (getauxval(AT_DROIDDECK) != DD_LOADER_INFO)
        return "not started by droiddeck-tracer";
    if (info()->magic != DD_INFO_MAGIC || info()->abi_version != DD_ABI_VERSION)
        return "the tracer is of another version";
    if (info()->key[0] == '\0')
        return "the tracer has no key";
    if (session()->magic != DD_SESSION_MAGIC || session()->abi_version != DD_ABI_VERSION)
        return "the session's page is of another version";
    if (key != NULL && strcmp(key, info()->key) != 0)
        return DD_GUEST_KEY " is not this session's key";
    return page_is_ours() ? NULL : "the page is taken";
}

static unsigned life_of_entries(void) {
    const char *text = variable(DD_GUEST_TTL);
    unsigned life = 0;

    if (text == NULL || *text == '\0')
        return DEFAULT_LIFE_MS;
    for (; *text >= '0' && *text <= '9' && life <= LONGEST_LIFE_MS; text++)
        life = life * 10 + (unsigned)(*text - '0');
    return *text == '\0' ? life : 0;
}

static void note_mount_names(void) {
    const struct dd_view *view = &session()->view;

    for (size_t n = 0; n < view->count; n++) {
        const char *guest = view->binds[n].guest;
        size_t length = view->binds[n].guest_length, at = length;
        while (at > 0 && guest[at - 1] != '/')
            at--;
        if (at < length) {
            unsigned bit = mount_name_bit(guest + at, length - at);
            fast.mount_names[bit / 64] |= 1ULL << (bit % 64);
        }
    }
}

RARE bool fast_decide(void) {
    if (getauxval(AT_DROIDDECK) == DD_LOADER_INFO && info()->has_own_filter)
        return false; /* not even the calls below */

    const char *why_off = reason_off();
    bool on = why_off == NULL;

    fast.why_off = why_off;
    fast.tells = variable(DD_GUEST_STATS) != NULL;
    if (on) {
        fast.life_ms = life_of_entries();
        note_mount_names();
    }
    __atomic_store_n(&fast.state, on ? FAST_ON : FAST_OFF, __ATOMIC_RELEASE);
    return on && !info()->has_own_filter;
}
