/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the scheduler's own files know of the class that executes plans:
 * included by sched.h.
 */
#ifndef _KERNEL_SCHED_PBS_H
#define _KERNEL_SCHED_PBS_H

#include <linux/cpumask.h>
#include <linux/jump_label.h>
#include <linux/sched.h>

struct rq;
struct sched_class;
struct seq_file;

extern const struct sched_class pbs_sched_class;

static inline int pbs_policy(int policy)
{
	return IS_ENABLED(CONFIG_SCHED_CLASS_PBS) && policy == SCHED_PBS;
}

#ifdef CONFIG_SCHED_CLASS_PBS
/* On: some CPU has a plan, or threads that have not left the class yet. */
DECLARE_STATIC_KEY_FALSE(sched_pbs_used);
/* The CPUs that have a plan; empty while that is off. */
extern struct cpumask sched_pbs_cpus;

/*
 * Where the walk of classes starts, which ends with the first that has a task.
 * While the class is not used it starts below it, unless one above has a task.
 */
#define pbs_first_class(rq)						\
	(pbs_is_used() || sched_stop_runnable(rq) || sched_dl_runnable(rq) ? \
	 __sched_class_highest : &rt_sched_class)

/* The class on one CPU, under the lock of its run queue. */
struct pbs_rq {
	unsigned int		nr_running;
	bool			lent;		/* what it has is time of lower classes */
	void			*state;		/* NULL until it is up */
};

/* Whether the thread is attached to a plan process. */
static inline bool pbs_has_seat(struct task_struct *p)
{
	return p->pbs.seat;
}

static inline bool pbs_is_used(void)
{
	return static_branch_unlikely(&sched_pbs_used);
}

/*
 * Whether the CPU has a plan: to others it is as good as busy, whatever it does
 * just now.
 */
static inline bool pbs_has_plan(int cpu)
{
	return pbs_is_used() && cpumask_test_cpu(cpu, &sched_pbs_cpus);
}

static inline bool pbs_is_class(const struct sched_class *class)
{
	return class == &pbs_sched_class;
}

/*
 * Whether a thread of the class, which is @curr, gives way to @p of a lower
 * class that wakes up: it has the CPU only because lower classes had nothing to
 * run, or @p is a real-time thread of the kernel, on which all may depend.
 */
#define pbs_gives_way(rq, curr, p)					\
	(pbs_is_used() && pbs_is_class((curr)->sched_class) &&		\
	 ((rq)->pbs.lent ||						\
	  ((p)->flags & PF_KTHREAD && (p)->sched_class == &rt_sched_class)))

/* What the class tells Linux, and Linux the class. */
void sched_pbs_use(bool used);
void sched_pbs_set_plan(struct rq *rq, bool has_plan);
void sched_pbs_left(struct task_struct *p);
void sched_pbs_cpu_deactivate(unsigned int cpu);
void sched_pbs_cpuset_changed(struct task_struct *p, const struct cpumask *cpus);

/* Where a thread stands in the plan of its CPU. */
struct pbs_place {
	u64	plan_id;
	s64	lateness_insns;
	u64	retired_insns;
	u64	planned_insns;
	u32	cpu;
	u32	process;
	s32	task;		/* -1: all have ended */
	u32	slot;
};

/* What a CPU does about its plan. */
struct pbs_standing {
	u64	plan_id;
	s64	lateness_insns;
	u64	slot_count_insns;
	s64	granted_process;	/* -1: none */
	u32	slot;
	u32	slots;
	u32	threads;
	u32	unfinished;
};

/* 0; -ESRCH: it is in no plan; -EBUSY: @wait is false, and the run queue is locked. */
int sched_pbs_place(struct task_struct *p, bool wait, struct pbs_place *place);
bool sched_pbs_standing(unsigned int cpu, struct pbs_standing *standing);

void proc_sched_show_pbs(struct task_struct *p, struct seq_file *m);
void print_pbs_stats(struct seq_file *m, int cpu);
#else
#define pbs_first_class(rq)	__sched_class_highest
#define pbs_gives_way(rq, curr, p)	false

static inline bool pbs_has_seat(struct task_struct *p) { return false; }
static inline bool pbs_is_used(void) { return false; }
static inline bool pbs_has_plan(int cpu) { return false; }
static inline bool pbs_is_class(const struct sched_class *class) { return false; }
static inline void sched_pbs_left(struct task_struct *p) { }
static inline void sched_pbs_cpu_deactivate(unsigned int cpu) { }
static inline void sched_pbs_cpuset_changed(struct task_struct *p,
					    const struct cpumask *cpus) { }
static inline void proc_sched_show_pbs(struct task_struct *p, struct seq_file *m) { }
static inline void print_pbs_stats(struct seq_file *m, int cpu) { }
#endif

#endif /* _KERNEL_SCHED_PBS_H */
