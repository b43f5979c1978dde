/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Numbers of system calls that older kernel headers lack. From 424 on they are the same on all architectures
 * (linux: scripts/syscall.tbl).
 */
#ifndef DD_TRACER_NUMBERS_H
#define DD_TRACER_NUMBERS_H

#include <asm/unistd.h>

#ifndef __NR_cachestat
#define __NR_cachestat 451 /* 6.5 */
#endif
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452 /* 6.6 */
#endif
#ifndef __NR_map_shadow_stack
#define __NR_map_shadow_stack 453 /* 6.6 */
#endif
#ifndef __NR_futex_wake
#define __NR_futex_wake 454 /* 6.7 */
#define __NR_futex_wait 455
#define __NR_futex_requeue 456
#endif
#ifndef __NR_statmount
#define __NR_statmount 457 /* 6.8 */
#define __NR_listmount 458
#endif
#ifndef __NR_lsm_get_self_attr
#define __NR_lsm_get_self_attr 459 /* 6.8 */
#define __NR_lsm_set_self_attr 460
#define __NR_lsm_list_modules 461
#endif
#ifndef __NR_mseal
#define __NR_mseal 462 /* 6.10 */
#endif
#ifndef __NR_setxattrat
#define __NR_setxattrat 463 /* 6.13 */
#define __NR_getxattrat 464
#define __NR_listxattrat 465
#define __NR_removexattrat 466
#endif
#ifndef __NR_open_tree_attr
#define __NR_open_tree_attr 467 /* 6.15 */
#endif
#ifndef __NR_file_getattr
#define __NR_file_getattr 468 /* 6.17 */
#define __NR_file_setattr 469
#endif
#ifndef __NR_listns
#define __NR_listns 470 /* 6.19 */
#endif
#if defined(__x86_64__) && !defined(__NR_uretprobe)
#define __NR_uretprobe 335 /* 6.11 */
#endif
#if defined(__x86_64__) && !defined(__NR_uprobe)
#define __NR_uprobe 336 /* 6.18 */
#endif

#endif
