/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SCHED_PBS_RECORD_H
#define _SCHED_PBS_RECORD_H

#include <linux/jump_label.h>
#include <linux/types.h>

/* On: somebody records what the policy is told. */
DECLARE_STATIC_KEY_FALSE(sched_pbs_recorded);

void sched_pbs_record(bool on);

#endif /* _SCHED_PBS_RECORD_H */
