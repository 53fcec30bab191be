// SPDX-License-Identifier: GPL-2.0

#include <linux/sched/signal.h>

int rust_helper_cond_resched(void)
{
	return cond_resched();
}

bool rust_helper_current_is_killed(void)
{
	return fatal_signal_pending(current);
}
