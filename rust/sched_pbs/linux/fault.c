// SPDX-License-Identifier: GPL-2.0

/*
 * The key behind which the faults are that fault.rs makes on purpose.
 */

#include "fault.h"

DEFINE_STATIC_KEY_FALSE(pbs_fault_key);

void pbs_fault_enable(void)
{
	static_branch_enable(&pbs_fault_key);
}
