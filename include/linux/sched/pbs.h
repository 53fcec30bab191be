/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_SCHED_PBS_H
#define _LINUX_SCHED_PBS_H

struct task_struct;

/* Names the process, the task and the slot of a thread that is in a plan, in any context. */
#ifdef CONFIG_SCHED_CLASS_PBS
void print_pbs_place(const char *log_lvl, struct task_struct *p);
#else
static inline void print_pbs_place(const char *log_lvl, struct task_struct *p) { }
#endif

#endif /* _LINUX_SCHED_PBS_H */
