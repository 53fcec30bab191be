/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the abstractions that plan-based scheduling needs read of the kernel:
 * included by bindings_helper.h, for `bindgen`.
 *
 * The first group is general and public.  The second one, for the class only,
 * is its own interface and the scheduler's private header.
 */

#include <linux/capability.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/jump_label.h>
#include <linux/kobject.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/sched/clock.h>
#include <linux/sched/task.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/sysfs.h>
#include <linux/task_work.h>
#include <linux/tracepoint-defs.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

/* `bindgen` does not evaluate what these macros are made of. */
const __poll_t RUST_CONST_HELPER_EPOLLIN = EPOLLIN;
const __poll_t RUST_CONST_HELPER_EPOLLOUT = EPOLLOUT;
const __poll_t RUST_CONST_HELPER_EPOLLERR = EPOLLERR;
const __poll_t RUST_CONST_HELPER_EPOLLHUP = EPOLLHUP;
const __poll_t RUST_CONST_HELPER_EPOLLRDNORM = EPOLLRDNORM;
const __poll_t RUST_CONST_HELPER_EPOLLWRNORM = EPOLLWRNORM;

#ifdef CONFIG_SCHED_CLASS_PBS
/* sched.h takes for granted what build_policy.c includes before it. */
#include <linux/sched/cputime.h>
#include <linux/sched/hotplug.h>
#include <linux/sched/isolation.h>
#include <linux/sched/posix-timers.h>
#include <linux/sched/rt.h>
#include <linux/cpuidle.h>
#include <linux/jiffies.h>
#include <linux/livepatch.h>
#include <linux/mmu_context.h>
#include <linux/pm.h>
#include <linux/psi.h>
#include <linux/rhashtable.h>
#include <linux/seq_buf.h>
#include <linux/seqlock_api.h>
#include <linux/suspend.h>
#include <linux/tsacct_kern.h>
#include <linux/vtime.h>
#include <linux/sysrq.h>
#include <linux/percpu-rwsem.h>
#include <uapi/linux/pbs.h>
#include <uapi/linux/sched/types.h>
#include "../../kernel/sched/sched.h"
/* The tracepoints, and what Rust calls for them; nothing may follow. */
#include <trace/events/pbs.h>
#define RUST_DO_TRACE RUST_DECLARE_DO_TRACE
#include <trace/rust_trace.h>
#include <trace/events/pbs.h>
#endif /* CONFIG_SCHED_CLASS_PBS */
