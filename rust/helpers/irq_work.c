// SPDX-License-Identifier: GPL-2.0

#include <linux/irq_work.h>

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

bool rust_helper_irq_work_is_pending(struct irq_work *work)
{
	return irq_work_is_pending(work);
}
#endif
