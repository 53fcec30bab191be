// SPDX-License-Identifier: GPL-2.0

#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/smp.h>

unsigned int rust_helper_raw_smp_processor_id(void)
{
	return raw_smp_processor_id();
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

const struct cpumask *rust_helper_cpumask_of(unsigned int cpu)
{
	return cpumask_of(cpu);
}

int rust_helper_set_cpus_allowed_ptr(struct task_struct *p,
				     const struct cpumask *new_mask)
{
	return set_cpus_allowed_ptr(p, new_mask);
}

bool rust_helper_task_is_bound_to(struct task_struct *p, unsigned int cpu)
{
	bool bound;

	/* Orders this against set_cpus_allowed_ptr(), which takes it too. */
	raw_spin_lock_irq(&p->pi_lock);
	bound = cpumask_equal(p->cpus_ptr, cpumask_of(cpu));
	raw_spin_unlock_irq(&p->pi_lock);
	return bound;
}
