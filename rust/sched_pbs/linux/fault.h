/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SCHED_PBS_FAULT_H
#define _SCHED_PBS_FAULT_H

#include <linux/jump_label.h>

#ifdef CONFIG_SCHED_CLASS_PBS_FAULTS
/* On from the first fault on that was made on purpose. */
DECLARE_STATIC_KEY_FALSE(pbs_fault_key);

void pbs_fault_enable(void);
#endif

#endif /* _SCHED_PBS_FAULT_H */
