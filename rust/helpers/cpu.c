// SPDX-License-Identifier: GPL-2.0

#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/cpuset.h>
#include <linux/security.h>
#include <linux/smp.h>

unsigned int rust_helper_raw_smp_processor_id(void)
{
	return raw_smp_processor_id();
}

unsigned long rust_helper_local_irq_save(void)
{
	unsigned long flags;

	local_irq_save(flags);
	return flags;
}

void rust_helper_local_irq_restore(unsigned long flags)
{
	local_irq_restore(flags);
}

unsigned int rust_helper_get_nr_cpu_ids(void)
{
	return nr_cpu_ids;
}

unsigned int rust_helper_num_possible_cpus(void)
{
	return num_possible_cpus();
}

bool rust_helper_cpu_possible(unsigned int cpu)
{
	return cpu < nr_cpu_ids && cpu_possible(cpu);
}

bool rust_helper_cpu_online(unsigned int cpu)
{
	return cpu < nr_cpu_ids && cpu_online(cpu);
}

/* These are inline functions or macros in some configurations. */
void rust_helper_cpus_read_lock(void)
{
	cpus_read_lock();
}

void rust_helper_cpus_read_unlock(void)
{
	cpus_read_unlock();
}

bool rust_helper_cpu_active(unsigned int cpu)
{
	return cpu_active(cpu);
}

bool rust_helper_task_is_bound_to(struct task_struct *p, unsigned int cpu)
{
	unsigned long flags;
	bool bound;

	/* Orders this against set_cpus_allowed_ptr(), which takes it too. */
	raw_spin_lock_irqsave(&p->pi_lock, flags);
	bound = cpumask_equal(&p->cpus_mask, cpumask_of(cpu));
	raw_spin_unlock_irqrestore(&p->pi_lock, flags);
	return bound;
}

/* A copy of the CPUs that a task may run on now; NULL: no memory. */
struct cpumask *rust_helper_task_copy_cpus(struct task_struct *p)
{
	struct cpumask *cpus = kmalloc(cpumask_size(), GFP_KERNEL_ACCOUNT);
	unsigned long flags;

	if (cpus) {
		raw_spin_lock_irqsave(&p->pi_lock, flags);
		cpumask_copy(cpus, &p->cpus_mask);
		raw_spin_unlock_irqrestore(&p->pi_lock, flags);
	}
	return cpus;
}

void rust_helper_free_cpus(struct cpumask *cpus)
{
	kfree(cpus);
}

/* Whether the cpuset of a task has a CPU; no memory is an error. */
int rust_helper_cpuset_has_cpu(struct task_struct *p, unsigned int cpu)
{
	cpumask_var_t allowed;
	int has;

	if (!alloc_cpumask_var(&allowed, GFP_KERNEL))
		return -ENOMEM;
	cpuset_cpus_allowed(p, allowed);
	has = cpumask_test_cpu(cpu, allowed);
	free_cpumask_var(allowed);
	return has;
}

/* What an LSM says of somebody who changes how a task is scheduled. */
int rust_helper_security_task_setscheduler(struct task_struct *p)
{
	return security_task_setscheduler(p);
}

bool rust_helper_cpumask_has_cpu(const struct cpumask *mask, unsigned int cpu)
{
	return cpumask_test_cpu(cpu, mask);
}
