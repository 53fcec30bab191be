// SPDX-License-Identifier: GPL-2.0

#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/preempt.h>

#ifdef CONFIG_IRQ_WORK
void rust_helper_init_irq_work(struct irq_work *work,
			       void (*func)(struct irq_work *))
{
	init_irq_work(work, func);
}

void rust_helper_init_irq_work_hard(struct irq_work *work,
				    void (*func)(struct irq_work *))
{
	*work = IRQ_WORK_INIT_HARD(func);
}

#ifdef CONFIG_SMP
/* An offline CPU would keep the work for good: it is refused there. */
bool rust_helper_irq_work_queue_online(struct irq_work *work, int cpu)
{
	bool queued = false;

	preempt_disable();
	if (cpu_online(cpu))
		queued = irq_work_queue_on(work, cpu);
	preempt_enable();
	return queued;
}
#endif

bool rust_helper_irq_work_is_pending(struct irq_work *work)
{
	return irq_work_is_pending(work);
}
#endif
