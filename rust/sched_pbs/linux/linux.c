// SPDX-License-Identifier: GPL-2.0

/*
 * What Linux around the class knows of it, and shows.
 */

#include <linux/sched/cputime.h>
#include <linux/sched/hotplug.h>
#include <linux/sched/isolation.h>
#include <linux/sched/pbs.h>
#include <linux/sched/posix-timers.h>
#include <linux/sched/rt.h>
#include <linux/cpuidle.h>
#include <linux/jiffies.h>
#include <linux/livepatch.h>
#include <linux/psi.h>
#include <linux/seq_file.h>
#include <linux/seqlock_api.h>
#include <linux/suspend.h>
#include <linux/tsacct_kern.h>
#include <linux/vtime.h>
#include <linux/percpu-rwsem.h>
#include <uapi/linux/sched/types.h>
#include "../../../sched.h"
#include "record.h"

DEFINE_STATIC_KEY_FALSE(sched_pbs_used);
struct cpumask sched_pbs_cpus;

/*
 * Called once for each CPU before its first plan comes, and once after the last
 * thread has left. The lock of CPU hotplug is held.
 */
void sched_pbs_use(bool used)
{
	if (used)
		static_branch_inc_cpuslocked(&sched_pbs_used);
	else
		static_branch_dec_cpuslocked(&sched_pbs_used);
}

DEFINE_STATIC_KEY_FALSE(sched_pbs_recorded);

/* Called for each who begins to record, or ends. The lock of CPU hotplug is held. */
void sched_pbs_record(bool on)
{
	if (on)
		static_branch_inc_cpuslocked(&sched_pbs_recorded);
	else
		static_branch_dec_cpuslocked(&sched_pbs_recorded);
}

/*
 * The CPU of a run queue, which is locked, has a plan from now on, or none.
 *
 * With a plan it is to real time what it is with a deadline task, see
 * cpupri_set(), and wants to run at the pace at which its rate was measured.
 */
void sched_pbs_set_plan(struct rq *rq, bool has_plan)
{
	int prio = rq->dl.dl_nr_running ? CPUPRI_HIGHER : rq->rt.highest_prio.curr;

	if (cpumask_test_cpu(rq->cpu, &sched_pbs_cpus) == has_plan)
		return;
	cpumask_assign_cpu(rq->cpu, &sched_pbs_cpus, has_plan);
	if (rq->online)
		cpupri_set(&rq->rd->cpupri, rq->cpu, prio);
	cpufreq_update_util(rq, 0);
}

/* SysRq prints the same to the log, without a file. */
#define SEQ_printf(m, x...)		\
do {					\
	if (m)				\
		seq_printf(m, x);	\
	else				\
		pr_cont(x);		\
} while (0)

/* The end of /proc/PID/sched. */
void proc_sched_show_pbs(struct task_struct *p, struct seq_file *m)
{
	struct pbs_place place;

	if (sched_pbs_place(p, true, &place))
		return;
#define P(F)	SEQ_printf(m, "%-45s:%21lld\n", "pbs." #F, (long long)place.F)
	P(plan_id);
	P(cpu);
	P(process);
	P(task);
	P(slot);
	P(planned_insns);
	P(retired_insns);
	P(lateness_insns);
#undef P
}

/* The section of a CPU in debug/sched/debug. */
void print_pbs_stats(struct seq_file *m, int cpu)
{
	struct pbs_standing standing;

	SEQ_printf(m, "\npbs_rq[%d]:\n  .%-30s: %u\n", cpu, "nr_running",
		   READ_ONCE(cpu_rq(cpu)->pbs.nr_running));
	if (!sched_pbs_standing(cpu, &standing))
		return;
#define P(F)	SEQ_printf(m, "  .%-30s: %lld\n", #F, (long long)standing.F)
	P(plan_id);
	P(slot);
	P(slots);
	P(slot_count_insns);
	P(granted_process);
	P(threads);
	P(unfinished);
	P(lateness_insns);
#undef P
}

/* May be called from an oops, with any lock held. */
void print_pbs_place(const char *log_lvl, struct task_struct *p)
{
	struct pbs_place place;

	switch (sched_pbs_place(p, false, &place)) {
	case 0:
		printk("%sPlan: %llu CPU: %u Process: %u Task: %d Slot: %u Lateness: %lld\n",
		       log_lvl, place.plan_id, place.cpu, place.process, place.task,
		       place.slot, place.lateness_insns);
		break;
	case -EBUSY:
		printk("%sPlan: its run queue is locked\n", log_lvl);
		break;
	}
}
