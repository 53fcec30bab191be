/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the abstractions that plan-based scheduling needs read of the kernel:
 * included by bindings_helper.h, for `bindgen`.
 *
 * The first group is general.  The second one is the class's own interface.  The
 * scheduler's private header is not for all: what the class needs of that is in
 * bindings of its own, see sched_class.rs.
 */

#include <linux/capability.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/jump_label.h>
#include <linux/kobject.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/panic_notifier.h>
#include <linux/perf_event.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/sched/clock.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/stop_machine.h>
#include <linux/sysfs.h>
#include <linux/sysrq.h>
#include <linux/task_work.h>
#include <linux/tracepoint-defs.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

/* `bindgen` does not evaluate what these macros are made of. */
const __poll_t RUST_CONST_HELPER_EPOLLIN = EPOLLIN;
const __poll_t RUST_CONST_HELPER_EPOLLOUT = EPOLLOUT;
const __poll_t RUST_CONST_HELPER_EPOLLERR = EPOLLERR;
const __poll_t RUST_CONST_HELPER_EPOLLRDNORM = EPOLLRDNORM;

#ifdef CONFIG_SCHED_CLASS_PBS
#include <uapi/linux/pbs.h>
#include <uapi/linux/sched/types.h>
#include "../../kernel/sched/pbs/sched_pbs/linux/fault.h"
#include "../../kernel/sched/pbs/sched_pbs/linux/record.h"
/* The tracepoints, and what Rust calls for them; nothing may follow. */
#include <trace/events/pbs.h>
#define RUST_DO_TRACE RUST_DECLARE_DO_TRACE
#include <trace/rust_trace.h>
#include <trace/events/pbs.h>
#endif /* CONFIG_SCHED_CLASS_PBS */
