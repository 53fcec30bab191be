// SPDX-License-Identifier: GPL-2.0

/*
 * The helpers of the abstractions that plan-based scheduling adds: included
 * by helpers.c as its own files are.
 */

#include "capability.c"
#include "cpu.c"
#include "give_way.c"
#include "hrtimer.c"
#include "iov.c"
#include "irq_work.c"
#include "mm.c"
#include "mmap.c"
#include "mutex_killable.c"
#include "perf_event.c"
#include "poll.c"
#include "ratelimit.c"
#include "task_work.c"
#include "uaccess_ext.c"
