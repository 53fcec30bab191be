// SPDX-License-Identifier: GPL-2.0

/*
 * What sched_class.rs calls: `bindgen` reads this file.  Rust calls its
 * functions without the prefix; they are exported to nobody.
 */

#include <linux/freezer.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/task.h>
#include <asm/irq_regs.h>

#include <linux/sched/cputime.h>
#include <linux/sched/hotplug.h>
#include <linux/sched/isolation.h>
#include <linux/sched/posix-timers.h>
#include <linux/sched/rt.h>
#include <linux/cpuidle.h>
#include <linux/mmu_context.h>
#include <linux/psi.h>
#include <linux/seqlock_api.h>
#include <linux/suspend.h>
#include <linux/tsacct_kern.h>
#include <linux/vtime.h>
#include <linux/percpu-rwsem.h>
#include <uapi/linux/sched/types.h>
#include "../../../sched.h"
#include "../../../pelt.h"
#include <trace/events/sched.h>

struct rq *rust_helper_cpu_rq(unsigned int cpu)
{
	return cpu_rq(cpu);
}

struct task_struct *rust_helper_rq_current(struct rq *rq)
{
	return rcu_dereference_protected(rq->curr, lockdep_is_held(__rq_lockp(rq)));
}

void rust_helper_rq_lock_irqsave(struct rq *rq, struct rq_flags *rf)
{
	rq_lock_irqsave(rq, rf);
}

bool rust_helper_rq_trylock_irqsave(struct rq *rq, struct rq_flags *rf)
{
	local_irq_save(rf->flags);
	if (!raw_spin_rq_trylock(rq)) {
		local_irq_restore(rf->flags);
		return false;
	}
	rq_pin_lock(rq, rf);
	return true;
}

void rust_helper_rq_unlock_irqrestore(struct rq *rq, struct rq_flags *rf)
{
	rq_unlock_irqrestore(rq, rf);
}

bool rust_helper_rq_has_dl_waiter(struct rq *rq)
{
	return rq->dl.dl_nr_running;
}

/* Whether a class below that of plans has a task to run; what only sleeps there is none. */
bool rust_helper_rq_has_lower_task(struct rq *rq)
{
#ifdef CONFIG_SCHED_CLASS_EXT
	if (rq->scx.nr_running)
		return true;
#endif
	return rq->cfs.h_nr_runnable || rt_rq_is_runnable(&rq->rt);
}

/*
 * Whether real time would choose a thread of the kernel.  There are tasks of
 * real time; a group of them is none.
 */
bool rust_helper_rq_has_rt_kernel_thread(struct rq *rq)
{
	struct rt_prio_array *array = &rq->rt.active;
	struct sched_rt_entity *first;
	int prio = sched_find_first_bit(array->bitmap);

	if (!rt_rq_is_runnable(&rq->rt) || prio >= MAX_RT_PRIO)
		return false;
	first = list_first_entry(array->queue + prio, struct sched_rt_entity, run_list);
#ifdef CONFIG_RT_GROUP_SCHED
	if (first->my_q)
		return false;
#endif
	return container_of(first, struct task_struct, rt)->flags & PF_KTHREAD;
}

void rust_helper_add_nr_running(struct rq *rq, unsigned int count)
{
	add_nr_running(rq, count);
}

void rust_helper_sub_nr_running(struct rq *rq, unsigned int count)
{
	sub_nr_running(rq, count);
}

void rust_helper_update_rt_load(struct rq *rq, bool running)
{
	update_rt_rq_load_avg(rq_clock_pelt(rq), rq, running);
}

u64 rust_helper_rq_clock_task(struct rq *rq)
{
	return rq_clock_task(rq);
}

/*
 * Binds a task to a CPU as the class does it, and not a cpuset: one that has a
 * seat is not moved by it.
 */
int rust_helper_task_bind_to_cpu(struct task_struct *p, unsigned int cpu)
{
	struct affinity_context ac = {
		.new_mask = cpumask_of(cpu),
		.flags = SCA_CHECK,
	};

	return __set_cpus_allowed_ptr(p, &ac);
}

/* Lets a task run on those of the CPUs that its cpuset has; NULL: all that its user wants. */
int rust_helper_task_set_cpus(struct task_struct *p, const struct cpumask *cpus)
{
	struct affinity_context ac = { .new_mask = cpus };
	cpumask_var_t wanted;
	unsigned long flags;
	int ret;

	if (cpus)
		return __sched_setaffinity(p, &ac);
	if (!alloc_cpumask_var(&wanted, GFP_KERNEL))
		return -ENOMEM;
	/* sched_setaffinity(2) may replace and free what the user wants. */
	raw_spin_lock_irqsave(&p->pi_lock, flags);
	cpumask_copy(wanted, task_user_cpus(p));
	raw_spin_unlock_irqrestore(&p->pi_lock, flags);
	ac.new_mask = wanted;
	ret = __sched_setaffinity(p, &ac);
	free_cpumask_var(wanted);
	return ret;
}

bool rust_helper_task_on_rq_queued(struct task_struct *p)
{
	return task_on_rq_queued(p);
}

/* Locks the run queue of the CPU that executes this. */
struct rq *rust_helper_this_rq_lock_irqsave(struct rq_flags *rf)
{
	struct rq *rq;

	local_irq_save(rf->flags);
	rq = this_rq();
	rq_lock(rq, rf);
	return rq;
}

/* What try_to_wake_up() does to a task of this run queue whose dequeue is delayed. */
void rust_helper_wake_delayed_task(struct rq *rq, struct task_struct *p)
{
	trace_sched_waking(p);
	enqueue_task(rq, p, ENQUEUE_NOCLOCK | ENQUEUE_DELAYED);
	WRITE_ONCE(p->__state, TASK_RUNNING);
	trace_sched_wakeup(p);
#ifdef CONFIG_SMP
	/* As ttwu_do_activate() does: the CPU is idle no more. */
	rq->idle_stamp = 0;
#endif
}

/* Makes up for a dequeue that was delayed. */
void rust_helper_block_delayed_task(struct rq *rq, struct task_struct *p)
{
	p->se.sched_delayed = 0;
	__block_task(rq, p);
}

/* The same, after looking whether it is such a task. */
void rust_helper_block_if_delayed(struct rq *rq, const struct sched_class *class,
				  struct task_struct *p)
{
	if (p->se.sched_delayed && task_rq(p) == rq && p->sched_class == class)
		rust_helper_block_delayed_task(rq, p);
}

bool rust_helper_sched_class_in_order(const struct sched_class *class)
{
	return sched_class_above(&dl_sched_class, class) &&
	       sched_class_above(class, &rt_sched_class);
}

bool rust_helper_must_not_wait(struct task_struct *p)
{
	return fatal_signal_pending(p) || freezing(p);
}

u64 rust_helper_local_scheduler_clock(void)
{
	return sched_clock_cpu(raw_smp_processor_id());
}

/* 1: in user code, 0: in the kernel, -1: this kind of interrupt does not tell. */
int rust_helper_interrupted_user(void)
{
	struct pt_regs *regs = get_irq_regs();

	return regs ? user_mode(regs) : -1;
}

bool rust_helper_interrupted_softirq(void)
{
	return in_serving_softirq();
}

/*
 * What the exit to user space does besides schedule(), which it does first; a
 * signal keeps that from sleeping.
 */
#define EXIT_WORK	(_TIF_SIGPENDING | _TIF_NOTIFY_SIGNAL | _TIF_NOTIFY_RESUME | _TIF_UPROBE)

bool rust_helper_exit_only_schedules(void)
{
	return !(read_thread_flags() & EXIT_WORK);
}

void rust_helper_set_current_state(unsigned int state)
{
	set_current_state(state);
}

void rust_helper___set_current_state(unsigned int state)
{
	__set_current_state(state);
}
